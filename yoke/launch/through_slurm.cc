// A batch script for Slurm.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/launch/modules.h"
#include "yoke/launch/progress.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

bool is_equal_everywhere(const LaunchPlan& plan, const spec::FabricPin& pin) {
  return std::all_of(plan.environment.begin(), plan.environment.end(), [&](const std::vector<spec::FabricPin>& all) {
    return std::any_of(all.begin(), all.end(), [&](const spec::FabricPin& other) {
      return other.name == pin.name && other.value == pin.value;
    });
  });
}

// What a node has of its own: its address, and pins whose names differ between nodes.
std::string case_of_nodes(const LaunchPlan& plan) {
  std::string text = "case \"$SLURMD_NODENAME\" in\n";
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    text += fmt::format("  {})\n    own_ip={}\n", plan.nodes[node].name, plan.nodes[node].own_ip);
    for (const spec::FabricPin& pin : plan.environment[node]) {
      if (!is_equal_everywhere(plan, pin)) {
        text += fmt::format("    export {}={}\n", pin.name, bash_word(pin.value));
      }
    }
    text += "    ;;\n";
  }
  return text + "  *) echo \"$SLURMD_NODENAME is no node of this launch\" >&2; exit 2 ;;\nesac\n";
}

// The address of a node is known only when Slurm has chosen the order of the nodes.
const Variables kSlurmNames = {{"node_rank", "$SLURM_NODEID"}, {"head_ip", "$head_ip"}, {"own_ip", "$own_ip"}};

bool has_placeholder(const std::string& word) {
  return std::any_of(kSlurmNames.begin(), kSlurmNames.end(),
                     [&](const auto& name) { return word.find(name.second) != std::string::npos; });
}

// Words with shell variables of ours in them stay open, everything else is quoted.
std::string open_words(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) {
    if (!text.empty()) text += word.starts_with('-') ? " \\\n    " : " ";
    text += has_placeholder(word) ? '"' + word + '"' : bash_word(word);
  }
  return text + "\n";
}

// Steps are counted for a guard: without one on a node nobody would read them.
std::string progress_guard(const LaunchPlan& plan, const ThroughOptions& options) {
  const std::string yoke = bash_word(plan.options.yoke);
  return fmt::format(
      "if ! command -v {0} >/dev/null; then\n"
      "  echo \"yoke, which watches the steps, is not installed on $SLURMD_NODENAME\" >&2\n  exit 2\nfi\n"
      "guard=({0} launch guard{1} --)\n",
      yoke, guard_words(Through::kSlurm, plan, options, 0));
}

std::string body_of(const LaunchPlan& plan) {
  const auto words = [&](const EngineProcess& process, std::size_t node) {
    std::vector<std::string> argv = process_words(plan, process.command, node, kSlurmNames);
    if (!plan.counts_steps() || process.step) return open_words(argv);
    return "\"${guard[@]}\" " + open_words(argv_with_progress(argv, plan.options.scratch));
  };
  if (plan.engine.slurm && !plan.engine.slurm->command.empty()) {
    return "exec " + open_words(process_words(plan, plan.engine.slurm->command, 0, kSlurmNames));
  }
  std::string head, worker;
  for (const EngineProcess& process : plan.engine.processes) {
    const std::string start = process.step ? "  " : "  exec ";
    if (process.on != RunsOn::kWorkers) head += start + words(process, 0);
    if (process.on != RunsOn::kHead && plan.several()) worker += start + words(process, 1);
  }
  if (!plan.several() || head == worker) return head.substr(2);
  if (worker.empty()) worker = "  exit 0  # this engine runs on the head only\n";
  return fmt::format("if [ \"$SLURM_NODEID\" = 0 ]; then\n{}else\n{}fi\n", head, worker);
}

std::string head_case(const LaunchPlan& plan) {
  std::string text = "case \"${hosts[0]}\" in\n";
  // A list of workers in the command is right for one head only.
  const bool one_head = std::any_of(plan.engine.processes.begin(), plan.engine.processes.end(),
                                    [](const EngineProcess& process) { return process.after_port == "rpc_port"; });
  for (const LaunchNode& node : plan.nodes) {
    text += fmt::format("  {}) head_ip={} ;;\n", node.name, node.own_ip);
    if (one_head) break;
  }
  return text + "  *) echo \"${hosts[0]} is no node of this launch\" >&2; exit 2 ;;\nesac\n";
}

}  // namespace

RenderedFile slurm_script(const LaunchPlan& plan, const ThroughOptions& options) {
  const LaunchNode& first = plan.nodes.front();
  const bool by_gpu = plan.engine.tasks == "gpu";
  std::vector<std::string> names;
  for (const LaunchNode& node : plan.nodes) names.push_back(node.name);
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --nodelist={}\n#SBATCH --ntasks-per-node={}\n",
      container_name(plan), plan.nodes.size(), fmt::join(names, ","), by_gpu ? first.gpus : 1);
  if (first.has_gpu && options.gpu_request) text += fmt::format("#SBATCH --gpus-per-node={}\n", first.gpus);
  text += "#SBATCH --exclusive\n#SBATCH --output=%x-%j.out\n#SBATCH --signal=TERM@120\n";
  if (!options.folder.empty()) text += fmt::format("#SBATCH --chdir={}\n", options.folder);
  if (!options.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", options.partition);
  if (!options.account.empty()) text += fmt::format("#SBATCH --account={}\n", options.account);
  if (!options.time_limit.empty()) text += fmt::format("#SBATCH --time={}\n", options.time_limit);
  text += fmt::format("# {}, written by 'yoke launch {} --through slurm'.\nset -euo pipefail\n", plan.engine.title,
                      plan.engine.name);
  text +=
      "\n# scontrol exits with 0 also where it cannot expand a list: count the names.\n"
      "mapfile -t hosts < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
      "if [ \"${#hosts[@]}\" -ne \"$SLURM_JOB_NUM_NODES\" ]; then\n"
      "  echo \"${#hosts[@]} host names for $SLURM_JOB_NUM_NODES nodes\" >&2\n  exit 2\nfi\n" +
      head_case(plan) +
      "export head_ip\n"
      "# srun does not inherit --cpus-per-task from Slurm 22.05 to 23.02, and gives a task one processor without "
      "it.\n" +
      fmt::format("export SRUN_CPUS_PER_TASK=${{SLURM_CPUS_PER_TASK:-$((SLURM_CPUS_ON_NODE / {}))}}\n",
                  by_gpu ? first.gpus : 1);
  for (const spec::FabricPin& pin : plan.environment.front()) {
    if (is_equal_everywhere(plan, pin)) text += exports_text({pin});
  }
  text +=
      "ulimit -l unlimited || true\n\n# Runs on every node: $SLURM_NODEID must be expanded there, not here.\n"
      "task=$(cat <<'TASK'\n" +
      case_of_nodes(plan);
  text += modules_text(plan.options.modules);
  const bool own_command = plan.engine.slurm && !plan.engine.slurm->command.empty();
  if (own_command && plan.counts_steps()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("--progress does not know the script in the command that {} has for Slurm", plan.engine.name),
        "leave out --progress");
  }
  if (!own_command) text += files_text(plan);  // srun knows its hosts itself
  const std::string mpi = plan.engine.slurm ? plan.engine.slurm->mpi : "";
  if (plan.counts_steps()) text += progress_guard(plan, options);
  text += body_of(plan) + fmt::format("TASK\n)\nexec srun --label --kill-on-bad-exit=1 {}bash -c \"$task\"\n",
                                      mpi.empty() ? "" : fmt::format("--mpi={} ", mpi));
  return {container_name(plan) + ".sbatch", std::move(text), 0755};
}

std::string find_double_launch(std::string_view script) {
  const std::string text(script);
  static const std::regex kTasks(R"((?:^|\n)#SBATCH[^\n]*--ntasks-per-node[= ](\d+))");
  static const std::regex kSrunTasks(R"(\bsrun\b[^\n]*--ntasks-per-node[= ](\d+))");
  static const std::regex kLauncher(
      R"((torchrun|torch\.distributed\.run|torch\.distributed\.launch|accelerate\s+launch|deepspeed))");
  static const std::regex kProcesses(R"(--(?:nproc[-_]per[-_]node|num_gpus|num_processes)[= ]\s*["']?(\$?\{?\w+\}?))");
  int tasks = 1;
  std::smatch match;
  if (std::regex_search(text, match, kTasks)) tasks = std::atoi(match[1].str().c_str());
  if (std::regex_search(text, match, kSrunTasks)) tasks = std::atoi(match[1].str().c_str());
  std::smatch launcher, processes;
  if (tasks <= 1 || !std::regex_search(text, launcher, kLauncher)) return "";
  if (!std::regex_search(text, processes, kProcesses) || processes[1] == "1") return "";
  return fmt::format(
      "{} tasks on each node, and each starts {} with {} processes: every GPU gets {} processes, and their ranks "
      "collide",
      tasks, launcher[1].str(), processes[1].str(), tasks);
}

}  // namespace yoke::launch
