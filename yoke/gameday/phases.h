// The story, phase by phase, in the order in which it is played. Each runs commands of the program and shares no code
// with them. A phase that cannot be played at a environment says why, and is skipped.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/gameday/environment.h"
#include "yoke/gameday/phase_run.h"

namespace yoke::gameday {

struct Phase {
  std::string_view name;
  std::string_view title;
  std::vector<std::string_view> needs = {};  // played before; where one failed, this is skipped
  void (*play)(Environment&, PhaseRun&) = nullptr;
  std::optional<std::string> (*why_not)(const Environment&) = [](const Environment&) {
    return std::optional<std::string>();
  };
};

std::span<const Phase> all_phases();

// Those named, with all that they need and the clean-up, in the story's order; all where none is named. An unknown name
// is Error(kUsage).
std::vector<const Phase*> choose_phases(const std::vector<std::string>& names);

// In files by what they are about: phase_nodes.cc, phase_handshake.cc, phase_servers.cc, phase_link.cc,
// phase_all_reduce.cc, phase_plan.cc, phase_model.cc, phase_faults.cc, phase_serve.cc, phase_why.cc, phase_batch.cc.
void run_lab_phase(Environment& environment, PhaseRun& phase_run);
void run_handshake_phase(Environment& environment, PhaseRun& phase_run);
void run_reach_phase(Environment& environment, PhaseRun& phase_run);
void run_servers_phase(Environment& environment, PhaseRun& phase_run);
void run_prove_phase(Environment& environment, PhaseRun& phase_run);
void run_all_reduce_phase(Environment& environment, PhaseRun& phase_run);
void run_inside_phase(Environment& environment, PhaseRun& phase_run);
void run_plan_phase(Environment& environment, PhaseRun& phase_run);
void run_model_phase(Environment& environment, PhaseRun& phase_run);
void run_kill_phase(Environment& environment, PhaseRun& phase_run);
void run_serve_phase(Environment& environment, PhaseRun& phase_run);
void run_fault_phase(Environment& environment, PhaseRun& phase_run);
void run_cut_phase(Environment& environment, PhaseRun& phase_run);
void run_why_phase(Environment& environment, PhaseRun& phase_run);
void run_batch_phase(Environment& environment, PhaseRun& phase_run);
void run_clean_up_phase(Environment& environment, PhaseRun& phase_run);

// Why the phases about servers cannot be played.
std::optional<std::string> why_no_servers(const Environment& environment);
std::optional<std::string> why_no_nvlink(const Environment& environment);

// Makes the model that is played, where no phase before did.
void prepare_model(Environment& environment, PhaseRun& phase_run);
// `yoke run MODEL -p …` with the question that all of them ask; and the further words by which all nodes answer it.
std::vector<std::string> question(const std::filesystem::path& model);
std::vector<std::string> on_all_nodes(const Environment& environment);
inline constexpr const char* kContext = "96";                 // of all of them
inline constexpr const char* kAnswer = "48";                  // tokens
std::size_t threads_of_rank(const Environment& environment);  // 0: as the engine decides
// `yoke chat MODEL` over all nodes.
std::vector<std::string> conversation(const Environment& environment);

}  // namespace yoke::gameday
