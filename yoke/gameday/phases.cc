#include "yoke/gameday/phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

// What was given is never changed. What it would take is a command that a person can give.
std::optional<std::string> why_no_handshake(const Venue& venue) {
  if (!venue.has_own_lab())
    return "what was given is not changed; 'yoke link setup --dry-run' shows what setup would do";
  return venue.why_no_network();
}

std::optional<std::string> why_no_halves(const Venue& venue) {
  const std::vector<ClusterNode> nodes = venue.cluster().nodes;
  if (nodes.size() >= 2 && nodes.front().halves.size() >= 2) return std::nullopt;
  return "the cluster file does not name two halves of two nodes";
}

std::optional<std::string> why_no_peers(const Venue& venue) {
  if (venue.cluster().nodes.size() >= 2) return std::nullopt;
  return "one node alone has nobody to exchange with";
}

std::optional<std::string> why_no_model(const Venue& venue) {
  if (venue.options().model) return std::nullopt;
  return venue.lab() ? "there is no model: name its folder with --model DIR"
                     : "on a cluster a model must be named that lies on every node: --model DIR";
}

std::optional<std::string> why_no_answer(const Venue& venue) {
  if (venue.answer) return std::nullopt;
  return why_no_model(venue).value_or("there is no whole answer to compare with");
}

}  // namespace

std::span<const Phase> all_phases() {
  static const std::vector<Phase> phases = {
      {.name = "lab", .title = "The nodes, and how they are cabled", .play = play_lab},
      {.name = "handshake",
       .title = "Machines from the factory find each other and are set up",
       .needs = {"lab"},
       .play = play_handshake,
       .why_not = why_no_handshake},
      {.name = "reach",
       .title = "ssh reaches every node without a question",
       .needs = {"lab", "handshake"},
       .play = play_reach},
      {.name = "prove",
       .title = "Each half alone, both together, and nothing to be found",
       .needs = {"lab", "handshake", "reach"},
       .play = play_prove,
       .why_not = why_no_halves},
      {.name = "all-reduce",
       .title = "The all-reduce of all nodes against the link's limit",
       .needs = {"lab", "handshake", "reach"},
       .play = play_all_reduce,
       .why_not = why_no_peers},
      {.name = "model",
       .title = "A model that one node refuses runs on all of them",
       .needs = {"lab", "handshake", "reach"},
       .play = play_model,
       .why_not = why_no_model},
      {.name = "kill",
       .title = "A rank is killed in mid-answer, and the answer goes on",
       .needs = {"model"},
       .play = play_kill,
       .why_not = why_no_answer},
      {.name = "fault",
       .title = "A half pulled and a half slowed are found, named and healed",
       .needs = {"lab", "handshake", "reach"},
       .play = play_fault,
       .why_not = [](const Venue& venue) { return venue.why_no_faults(); }},
      {.name = "cut",
       .title = "Half of the cable is cut, and the work goes on",
       .needs = {"lab", "handshake", "reach"},
       .play = play_cut,
       .why_not = [](const Venue& venue) { return venue.why_no_faults(); }},
      {.name = "clean-up", .title = "What was started is ended", .play = play_clean_up},
  };
  return phases;
}

std::vector<const Phase*> choose_phases(const std::vector<std::string>& names) {
  const std::span<const Phase> phases = all_phases();
  std::vector<std::string> known;
  for (const Phase& phase : phases) known.emplace_back(phase.name);
  std::vector<std::string> wanted = names.empty() ? known : names;
  wanted.emplace_back("clean-up");
  for (std::size_t i = 0; i < wanted.size(); ++i) {  // grows by what each needs
    const auto found = std::find(known.begin(), known.end(), wanted[i]);
    if (found == known.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("there is no phase '{}'", printable(wanted[i], 60)),
                  suggest(wanted[i], known, "phases"));
    }
    const Phase& phase = phases[static_cast<std::size_t>(found - known.begin())];
    wanted.insert(wanted.end(), phase.needs.begin(), phase.needs.end());
  }
  std::vector<const Phase*> chosen;
  for (const Phase& phase : phases) {
    if (std::find(wanted.begin(), wanted.end(), phase.name) != wanted.end()) chosen.push_back(&phase);
  }
  return chosen;
}

}  // namespace yoke
