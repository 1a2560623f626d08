#include "yoke/launch/slurm_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

struct SlurmState {
  std::string word, reason;
};

// "idle", "allocated", "mixed" and "completing" take jobs, now or soon; '*' after a word means that the node does not
// answer its controller.
bool takes_jobs(const std::string& word) {
  constexpr std::array kGood = {"idle", "allocated", "mixed", "completing", "planned"};
  std::string bare = word;
  while (!bare.empty() && std::string_view("+~#!%$@^-").find(bare.back()) != std::string_view::npos) bare.pop_back();
  return std::find(kGood.begin(), kGood.end(), bare) != kGood.end();
}

spec::Finding state_finding(const std::string& node, const SlurmState& state) {
  const bool silent = state.word.ends_with('*');
  const bool has_reason = !state.reason.empty() && state.reason != "none";
  return {
      .rule = "launch-slurm-node",
      .severity = spec::Severity::kError,
      .node = node,
      .subject = node,
      .what = fmt::format("Slurm does not start jobs on {}.", node),
      .evidence = fmt::format("Its state is '{}'{}{}.", printable(state.word, 40),
                              silent ? ": the node does not answer the controller" : "",
                              has_reason ? fmt::format(" ({})", printable(state.reason, 80)) : ""),
      .consequence = "The job would wait in the queue until the node is back.",
      .fix = silent ? fmt::format("On {}: systemctl start slurmd. Then: scontrol update nodename={} state=resume", node,
                                  node)
                    : fmt::format("scontrol show node {}; then: scontrol update nodename={} state=resume", node, node)};
}

}  // namespace

std::vector<spec::Finding> evaluate_slurm_nodes(const std::vector<std::string>& nodes, std::string_view sinfo) {
  std::map<std::string, SlurmState> states;  // a node of several partitions has several lines, all alike
  for (const std::string& line : split(sinfo, '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (parts.size() >= 2) states[std::string(trim(parts[0]))] = {parts[1], parts.size() > 2 ? parts[2] : ""};
  }
  std::vector<spec::Finding> findings;
  for (const std::string& node : nodes) {
    const auto found = states.find(node);
    if (found == states.end()) {
      findings.push_back({.rule = "launch-slurm-node",
                          .severity = spec::Severity::kError,
                          .node = node,
                          .subject = node,
                          .what = fmt::format("Slurm knows no node '{}'.", node),
                          .evidence = fmt::format("sinfo lists {} other nodes.", states.size()),
                          .consequence = "sbatch refuses the script.",
                          .fix = "Give the nodes of the cluster file the names that 'sinfo -N' prints"});
    } else if (!takes_jobs(found->second.word)) {
      findings.push_back(state_finding(node, found->second));
    }
  }
  return findings;
}

std::vector<spec::Finding> slurm_findings(const std::vector<std::string>& nodes) {
  if (!is_installed("sbatch") || !is_installed("sinfo")) {
    throw Error(ErrorCode::kUnavailable, "Slurm is not installed on this machine: there is no sbatch",
                "--dry-run prints the script; -o FOLDER writes it, to be submitted where Slurm is");
  }
  const Outcome asked = run({.argv = {"sinfo", "-N", "-h", "-o", "%N|%T|%E"}, .timeout = Seconds{30}});
  if (!asked.ok()) {
    throw Error(ErrorCode::kUnavailable, "Slurm's controller does not answer: sinfo " + asked.describe(),
                "systemctl status slurmctld, on the machine of the controller");
  }
  return evaluate_slurm_nodes(nodes, asked.out);
}

}  // namespace yoke::launch
