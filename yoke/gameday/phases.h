// The story, phase by phase, in the order in which it is played. Each runs commands of the program and shares no code
// with them. A phase that cannot be played at a venue says why, and is skipped.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/gameday/scene.h"
#include "yoke/gameday/venue.h"

namespace yoke {

struct Phase {
  std::string_view name;
  std::string_view title;
  std::vector<std::string_view> needs = {};  // played before; where one failed, this is skipped
  void (*play)(Venue&, Scene&) = nullptr;
  std::optional<std::string> (*why_not)(const Venue&) = [](const Venue&) { return std::optional<std::string>(); };
};

std::span<const Phase> all_phases();

// Those named, with all that they need and the clean-up, in the story's order; all where none is named. An unknown name
// is Error(kUsage).
std::vector<const Phase*> choose_phases(const std::vector<std::string>& names);

// In files by what they are about: phase_nodes.cc, phase_handshake.cc, phase_link.cc, phase_all_reduce.cc,
// phase_model.cc, phase_faults.cc.
void play_lab(Venue& venue, Scene& scene);
void play_handshake(Venue& venue, Scene& scene);
void play_reach(Venue& venue, Scene& scene);
void play_prove(Venue& venue, Scene& scene);
void play_all_reduce(Venue& venue, Scene& scene);
void play_model(Venue& venue, Scene& scene);
void play_kill(Venue& venue, Scene& scene);
void play_fault(Venue& venue, Scene& scene);
void play_cut(Venue& venue, Scene& scene);
void play_clean_up(Venue& venue, Scene& scene);

// `yoke run MODEL -p …` with the question that all of them ask; and the further words by which all nodes answer it.
std::vector<std::string> question(const std::filesystem::path& model);
std::vector<std::string> on_all_nodes(const Venue& venue);
// `yoke chat MODEL` over all nodes.
std::vector<std::string> conversation(const Venue& venue);

}  // namespace yoke
