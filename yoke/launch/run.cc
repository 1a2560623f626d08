#include "yoke/launch/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/launch/modules.h"
#include "yoke/remote/quote.h"

namespace yoke::launch {
namespace {

// Steps, files and the main process as one argv; a shell only where it is needed.
std::vector<std::string> node_argv(const LaunchPlan& plan, std::size_t node, const StartOptions& options) {
  const Through through = options.through;
  const bool contained = through == Through::kDocker || through == Through::kApptainer;
  std::string script = (contained ? "" : modules_text(plan.options.modules)) + files_text(plan);
  std::vector<std::string> main;
  for (const NodeProcess* process : plan.of_node(node)) {
    const auto argv = contained ? container_argv(through, plan, *process, options.limit) : process->argv;
    if (process->step) {
      script += remote::shell_join(argv) + " || exit\n";
    } else {
      main = argv;
    }
  }
  if (script.empty()) return main;
  return {"bash", "-c", script + "exec " + remote::shell_join(main)};
}

}  // namespace

std::vector<std::string> guard_argv(const LaunchPlan& plan, std::size_t node, const StartOptions& options) {
  std::vector<std::string> argv = {"yoke", "launch", "guard"};
  const auto add = [&](std::vector<std::string> words) { argv.insert(argv.end(), words.begin(), words.end()); };
  if (options.floor.value > 0) add({"--floor", exact(options.floor)});
  // A container's processes are children of its daemon: the group would hold the client only.
  if (options.limit.value > 0 && options.through == Through::kSsh) add({"--limit", exact(options.limit)});
  for (const std::string& option : plan.engine.lower) add({"--lower=" + option});
  for (const NodeProcess* process : plan.of_node(node)) {
    for (const std::string& endpoint : process->wait_for) add({"--wait-for", endpoint});
  }
  if (node == 0 && plan.engine.ready && !plan.engine.ready->canary.empty()) {
    add({"--canary", std::to_string(plan.port("port")), "--canary-model", plan.api_model(), "--start-limit",
         exact(plan.engine.ready->start)});
  }
  if (options.through == Through::kDocker) add({"--container", container_name(plan)});
  if (plan.counts_steps()) {
    add({"--progress", plan.options.scratch, "--progress-limit", exact(plan.options.progress)});
  }
  if (plan.uses_scratch()) add({"--remove", plan.options.scratch});
  add({"--"});
  add(node_argv(plan, node, options));
  return argv;
}

job::JobSpec job_of(const LaunchPlan& plan, const std::vector<spec::ClusterNode>& nodes, const StartOptions& options) {
  job::JobSpec spec{.name = container_name(plan), .argv = {"yoke", "launch", "guard"}, .own_program = true};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.of_node(i).empty()) continue;
    job::JobNode node{.node = nodes[i], .ranks = 1, .environment = {}, .argv = guard_argv(plan, i, options)};
    for (const spec::FabricPin& pin : plan.environment[i]) {
      node.environment.push_back({pin.name, pin.value});
      // Apptainer cuts values at commas on its command line.
      if (options.through == Through::kApptainer) node.environment.push_back({"APPTAINERENV_" + pin.name, pin.value});
    }
    spec.nodes.push_back(std::move(node));
  }
  if (!options.folder.empty()) spec.folder = options.folder;
  spec.grace = Seconds{5};
  return spec;
}

bool never_worked(const AttemptEnd& end) {
  return !end.was_ready && end.lasted.value < 20 && end.kind == job::CauseKind::kRankExited;
}

std::optional<Seconds> Restarts::after(const AttemptEnd& end) {
  const bool by_user = end.kind == job::CauseKind::kStopped || end.kind == job::CauseKind::kTimeLimit;
  if (by_user || end.kind == job::CauseKind::kNotStarted || never_worked(end)) return std::nullopt;
  if (end.was_ready && end.lasted >= rule_.healthy_after) used_ = 0;
  if (used_ >= rule_.restarts_max) return std::nullopt;
  const Seconds pause{rule_.first_pause.value * static_cast<double>(1 << std::min(used_, 6))};
  ++used_;
  return pause;
}

}  // namespace yoke::launch
