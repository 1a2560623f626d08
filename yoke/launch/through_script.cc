// Scripts and container lines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"
#include "yoke/launch/modules.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

constexpr std::string_view kWaitForPort =
    "wait_for_port() {  # address port\n"
    "  for _ in $(seq 600); do\n"
    "    if (exec 3<>\"/dev/tcp/$1/$2\") 2>/dev/null; then return 0; fi\n"
    "    sleep 1\n"
    "  done\n"
    "  echo \"nothing answers at $1:$2\" >&2\n"
    "  return 1\n"
    "}\n";

// Words of the user stand in single quotes: a '$' in them is meant as it is.
constexpr const char* kNoExpansion = "# shellcheck disable=SC2016\n";

std::string title_of(const LaunchPlan& plan, const LaunchNode& node) {
  return fmt::format("# {} on {}, written by 'yoke launch {}'.\n", plan.engine.title, node.name, plan.engine.name);
}

void refuse_mpi_in_containers(const LaunchPlan& plan, const NodeProcess& process) {
  if (process.argv.empty() || process.argv.front() != "mpirun") return;
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{} is started by mpirun, which cannot reach into the containers of other nodes", plan.engine.name),
      "--through slurm or --through kubernetes; or start it without a container: --through ssh");
}

std::string require_image(const LaunchPlan& plan) {
  if (!plan.image.empty()) return plan.image;
  throw Error(ErrorCode::kUsage,
              fmt::format("no container image of {} is known for {}", plan.engine.name,
                          plan.nodes.front().gpu_name.empty() ? "these nodes" : plan.nodes.front().gpu_name),
              "--image NAME:TAG");
}

bool is_path(const std::string& model) { return model.starts_with('/'); }

std::string megabytes(Bytes size) { return fmt::format("{}m", size.value >> 20); }

// Files of the launch that do not lie in a folder which the container has as a whole.
std::vector<std::string> files_in_container(const LaunchPlan& plan) {
  std::vector<std::string> paths;
  for (const LaunchFile& file : plan.files) {
    const bool is_shared = plan.counts_steps() && file.path.starts_with(plan.options.scratch + "/");
    if (!is_shared) paths.push_back(file.path);
  }
  return paths;
}

// Values with commas, which Apptainer would cut on its command line.
std::string apptainer_exports(const LaunchPlan& plan, std::size_t node) {
  std::string text;
  for (const spec::FabricPin& pin : plan.environment[node]) {
    if (pin.value.find(',') == std::string::npos) continue;
    text += fmt::format("export APPTAINERENV_{}={}\n", pin.name, bash_word(pin.value));
  }
  return text;
}

// A folder that nobody else can write to, or an end: another user may have made it, or a link in its place.
std::string own_folder_text(const std::string& folder) {
  return fmt::format(
      "(umask 077 && mkdir -p {0})\n"
      "if [ ! -d {0} ] || [ ! -O {0} ] || [ -L {0} ]; then echo {1} >&2; exit 2; fi\n",
      bash_word(folder), bash_word(folder + " belongs to another user"));
}

}  // namespace

std::string guard_words(Through through, const LaunchPlan& plan, const ThroughOptions& options, std::size_t node) {
  std::string words;
  if (options.floor.value > 0) {
    words += fmt::format(" --floor {}", exact(options.floor));
    for (const std::string& option : plan.engine.lower) words += " " + bash_word("--lower=" + option);
  }
  if (node == 0 && plan.engine.ready && !plan.engine.ready->canary.empty()) {
    words += fmt::format(" --canary {} --canary-model {} --start-limit {}", plan.port("port"),
                         bash_word(plan.api_model()), exact(plan.engine.ready->start));
  }
  if (const auto head = followed_port(plan, node)) words += fmt::format(" --follow {}", *head);
  if (plan.counts_steps()) {
    // The steps of an earlier start would count as those of the next one.
    words += fmt::format(" --progress {0} --progress-limit {1} --remove {0}", bash_word(plan.options.scratch),
                         exact(plan.options.progress));
  }
  if (!words.empty() && through == Through::kDocker) words += fmt::format(" --container {}", container_name(plan));
  return words;
}

std::vector<std::string> through_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : enum_names(Through{})) names.emplace_back(name);
  return names;
}

Through through_from(const std::string& name) {
  for (const auto& [known, value] : enum_names(Through{})) {
    if (name == known) return value;
  }
  const std::vector<std::string> names = through_names();
  throw Error(ErrorCode::kUsage, fmt::format("--through cannot be '{}'", printable(name, 40)),
              suggest(name, names, "ways"));
}

std::string bash_word(const std::string& word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  const bool plain = !word.empty() && word.front() != '=' && word.find_first_not_of(kPlain) == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string exports_text(const std::vector<spec::FabricPin>& environment, std::string_view indent) {
  std::string text;
  for (const spec::FabricPin& pin : environment) {
    text += fmt::format("{}# {}\n{}export {}={}\n", indent, pin.reason, indent, pin.name, bash_word(pin.value));
  }
  return text;
}

std::string files_text(const LaunchPlan& plan) {
  std::string text;
  if (!plan.options.profile.empty()) text += own_folder_text(plan.options.profile);
  if (plan.uses_scratch()) text += own_folder_text(plan.options.scratch);
  for (const LaunchFile& file : plan.files) {
    text += fmt::format("cat > {} <<'END'\n{}END\n", bash_word(file.path), file.text);
  }
  return text;
}

// A flag and its value on a line of their own.
std::string words_text(const std::vector<std::string>& argv, std::string_view indent) {
  std::string text;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const bool breaks = i > 0 && argv[i].starts_with('-') && i + 1 <= argv.size();
    if (i > 0) text += breaks ? fmt::format(" \\\n{}  ", indent) : " ";
    text += bash_word(argv[i]);
  }
  return text + "\n";
}

std::string container_name(const LaunchPlan& plan) {
  std::string name = "yoke-" + plan.engine.name;
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

std::optional<std::string> followed_port(const LaunchPlan& plan, std::size_t node) {
  const auto on_all = [](const EngineProcess& process) { return process.on == RunsOn::kAll; };
  const std::vector<EngineProcess>& processes = plan.engine.processes;
  if (node == 0 || !plan.engine.ready || std::none_of(processes.begin(), processes.end(), on_all)) return std::nullopt;
  return fmt::format("{}:{}", plan.nodes.front().own_ip, plan.port("port"));
}

std::vector<std::string> container_argv(Through through, const LaunchPlan& plan, const NodeProcess& process,
                                        Bytes limit) {
  refuse_mpi_in_containers(plan, process);
  const std::string image = require_image(plan);
  const LaunchNode& node = plan.nodes[process.node];
  std::vector<std::string> argv;
  const auto add = [&](std::vector<std::string> words) { argv.insert(argv.end(), words.begin(), words.end()); };
  const bool model_is_path = is_path(plan.options.model);
  if (through == Through::kDocker) {
    add({"docker", "run", "--rm", "--name", container_name(plan) + (process.step ? "-" + process.name : "")});
    add({"--network", "host", "--ipc", "host"});
    if (node.has_gpu) add({"--gpus", "all"});
    if (node.rdma) add({"--device", "/dev/infiniband", "--cap-add", "IPC_LOCK"});
    // A machine without RDMA and GPUs needs none of these, and may not be allowed to raise them.
    if (node.rdma || node.has_gpu) add({"--ulimit", "memlock=-1", "--ulimit", "nofile=1048576:1048576"});
    add({"--ulimit", "stack=67108864"});
    // Without --memory-swap Docker adds as much swap again: the container would page where it should end.
    if (limit.value > 0) add({"--memory", megabytes(limit), "--memory-swap", megabytes(limit)});
    if (model_is_path) add({"--volume", fmt::format("{}:{}:ro", plan.options.model, plan.options.model)});
    if (!plan.options.profile.empty()) {
      add({"--volume", fmt::format("{}:{}", plan.options.profile, plan.options.profile)});
    }
    for (const std::string& path : files_in_container(plan)) add({"--volume", fmt::format("{}:{}:ro", path, path)});
    // Ranks write their steps there.
    if (plan.counts_steps()) add({"--volume", fmt::format("{}:{}", plan.options.scratch, plan.options.scratch)});
    for (const spec::FabricPin& pin : plan.environment[process.node]) add({"--env", pin.name + "=" + pin.value});
    // Keys by name only: their values are those of the node's own environment.
    add({"--env", "HF_TOKEN", "--env", "WANDB_API_KEY", "--entrypoint=", image});
  } else {
    add({"apptainer", "exec", "--nv"});
    std::vector<std::string> binds;
    if (node.rdma) binds.emplace_back("/dev/infiniband");
    if (model_is_path) binds.push_back(plan.options.model);
    if (!plan.options.profile.empty()) binds.push_back(plan.options.profile);
    for (const std::string& path : files_in_container(plan)) binds.push_back(path);
    if (plan.counts_steps()) binds.push_back(plan.options.scratch);
    if (!binds.empty()) add({"--bind", fmt::format("{}", fmt::join(binds, ","))});
    for (const spec::FabricPin& pin : plan.environment[process.node]) {
      // Apptainer cuts --env at commas: such values go in by its own prefix.
      if (pin.value.find(',') == std::string::npos) add({"--env", pin.name + "=" + pin.value});
    }
    add({image.ends_with(".sif") ? image : "docker://" + image});
  }
  argv.insert(argv.end(), process.argv.begin(), process.argv.end());
  return argv;
}

std::string node_script(Through through, const LaunchPlan& plan, const ThroughOptions& options, std::size_t node) {
  const bool contained = through == Through::kDocker || through == Through::kApptainer;
  const std::vector<const NodeProcess*> processes = plan.of_node(node);
  std::string text = "#!/bin/bash\n" + title_of(plan, plan.nodes[node]) + kNoExpansion + "set -euo pipefail\n";
  if (through == Through::kApptainer) text += apptainer_exports(plan, node);
  if (!options.folder.empty()) text += fmt::format("cd {}\n", bash_word(options.folder));
  if (!contained) text += modules_text(plan.options.modules);
  if (!contained) text += "\n" + exports_text(plan.environment[node]) + "ulimit -l unlimited || true\n";
  const std::string files = files_text(plan);
  if (!files.empty()) text += "\n" + files;
  const bool waits = std::any_of(processes.begin(), processes.end(),
                                 [](const NodeProcess* process) { return !process->wait_for.empty(); });
  if (waits) text += "\n" + std::string(kWaitForPort);
  const std::string guard = guard_words(through, plan, options, node);
  if (!guard.empty()) {
    text += fmt::format(
        "\n# Stops the engine before it takes the last memory of this node, and when it hangs, where yoke is "
        "installed.\n"
        "run() {{\n  if command -v yoke >/dev/null; then\n    exec yoke launch guard{} -- \"$@\"\n  fi\n  exec "
        "\"$@\"\n}}\n",
        guard);
  }
  for (const NodeProcess* process : processes) {
    text += "\n";
    for (const std::string& endpoint : process->wait_for) {
      const std::size_t colon = endpoint.rfind(':');
      text += fmt::format("wait_for_port {} {}\n", endpoint.substr(0, colon), endpoint.substr(colon + 1));
    }
    const auto argv = contained ? container_argv(through, plan, *process, options.limit) : process->argv;
    text += (process->step ? "" : guard.empty() ? "exec " : "run ") + words_text(argv);
  }
  return text;
}

std::vector<RenderedFile> render(Through through, const LaunchPlan& plan, const ThroughOptions& options) {
  if (through == Through::kSlurm) return {slurm_script(plan, options)};
  if (through == Through::kKubernetes) return {kubernetes_manifest(plan, options)};
  std::vector<RenderedFile> files;
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    if (plan.of_node(node).empty()) continue;
    files.push_back({plan.nodes[node].name + ".sh", node_script(through, plan, options, node), 0755});
  }
  return files;
}

}  // namespace yoke::launch
