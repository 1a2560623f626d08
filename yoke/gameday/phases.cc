#include "yoke/gameday/phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::gameday {
namespace {

// What was given is never changed. What it would take is a command that a person can give.
std::optional<std::string> why_no_handshake(const Environment& environment) {
  if (!environment.has_own_lab())
    return "what was given is not changed; 'yoke link setup --dry-run' shows what setup would do";
  return environment.why_no_network();
}

std::optional<std::string> why_no_rails(const Environment& environment) {
  const std::vector<spec::ClusterNode> nodes = environment.cluster().nodes;
  if (nodes.size() >= 2 && nodes.front().rails.size() >= 2) return std::nullopt;
  return "the cluster file does not name two rails of two nodes";
}

std::optional<std::string> why_no_peers(const Environment& environment) {
  if (environment.cluster().nodes.size() >= 2) return std::nullopt;
  return "one node alone has nobody to exchange with";
}

std::optional<std::string> why_no_model(const Environment& environment) {
  if (environment.options().model) return std::nullopt;
  return environment.lab() ? "there is no model: name its folder with --model DIR"
                           : "on a cluster a model must be named that lies on every node: --model DIR";
}

std::optional<std::string> why_no_broken_run(const Environment& environment) {
  const auto faults = environment.why_no_faults();
  return faults ? faults : why_no_model(environment);
}

std::optional<std::string> why_no_answer(const Environment& environment) {
  if (environment.answer) return std::nullopt;
  return why_no_model(environment).value_or("there is no whole answer to compare with");
}

}  // namespace

std::span<const Phase> all_phases() {
  static const std::vector<Phase> phases = {
      {.name = "lab", .title = "The nodes, and how they are cabled", .play = run_lab_phase},
      {.name = "handshake",
       .title = "New machines are discovered and set up",
       .needs = {"lab"},
       .play = run_handshake_phase,
       .why_not = why_no_handshake},
      {.name = "reach",
       .title = "ssh reaches every node without a question",
       .needs = {"lab", "handshake"},
       .play = run_reach_phase},
      {.name = "servers",
       .title = "Each server is whole: GPUs, NVLink, rails, driver, diagnostic",
       .needs = {"lab", "handshake", "reach"},
       .play = run_servers_phase,
       .why_not = why_no_servers},
      {.name = "prove",
       .title = "Link test and check",
       .needs = {"lab", "handshake", "reach"},
       .play = run_prove_phase,
       .why_not = why_no_rails},
      {.name = "all-reduce",
       .title = "The all-reduce of all nodes against the link's limit",
       .needs = {"lab", "handshake", "reach"},
       .play = run_all_reduce_phase,
       .why_not = why_no_peers},
      {.name = "inside",
       .title = "The all-reduce in one server over NVLink, and of all servers",
       .needs = {"lab", "handshake", "reach"},
       .play = run_inside_phase,
       .why_not = why_no_nvlink},
      {.name = "plan",
       .title = "What the plan expects of the model, with constants measured here",
       .needs = {"lab", "handshake", "reach"},
       .play = run_plan_phase,
       .why_not = why_no_model},
      {.name = "model",
       .title = "A model that one node refuses runs on all of them",
       .needs = {"lab", "handshake", "reach"},
       .play = run_model_phase,
       .why_not = why_no_model},
      {.name = "kill",
       .title = "A rank is killed in mid-answer, and the answer goes on",
       .needs = {"model"},
       .play = run_kill_phase,
       .why_not = why_no_answer},
      {.name = "serve",
       .title = "Eight clients stream, a rank is killed, and nothing is lost",
       .needs = {"lab", "handshake", "reach"},
       .play = run_serve_phase,
       .why_not = why_no_model},
      {.name = "fault",
       .title = "A pulled rail and a slow rail are found, named and repaired",
       .needs = {"lab", "handshake", "reach"},
       .play = run_fault_phase,
       .why_not = [](const Environment& environment) { return environment.why_no_faults(); }},
      {.name = "cut",
       .title = "Half of the cable is cut, and the work goes on",
       .needs = {"lab", "handshake", "reach"},
       .play = run_cut_phase,
       .why_not = [](const Environment& environment) { return environment.why_no_faults(); }},
      {.name = "why",
       .title = "Half of the cable is dark, and 'yoke why' names the half",
       .needs = {"lab", "handshake", "reach"},
       .play = run_why_phase,
       .why_not = why_no_broken_run},
      {.name = "batch",
       .title = "Ten lines of a batch over a rank that is killed",
       .needs = {"lab", "handshake", "reach"},
       .play = run_batch_phase,
       .why_not = why_no_broken_run},
      {.name = "clean-up", .title = "What was started is ended", .play = run_clean_up_phase},
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

}  // namespace yoke::gameday
