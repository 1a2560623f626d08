#include "yoke/launch/launch_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/launch/progress.h"

namespace yoke::launch {
namespace {

int gpus_of(const std::vector<LaunchNode>& nodes) {
  int sum = 0;
  for (const LaunchNode& node : nodes) sum += node.gpus;
  return sum;
}

bool is_power_of_two(int number) { return number > 0 && (number & (number - 1)) == 0; }

// Without a plan: all GPUs of a node share each layer; further nodes too where their number allows it, else they are
// stages.
void choose_layout(LaunchPlan& plan, const std::optional<PlannedShape>& shape) {
  const LaunchOptions& options = plan.options;
  const int all = gpus_of(plan.nodes);
  const bool given = options.tensor > 0 || options.pipeline > 0 || options.replicas > 0;
  if (!given && shape) {
    plan.tensor = shape->tensor;
    plan.pipeline = shape->pipeline;
    plan.replicas = shape->replicas;
  } else if (!given) {
    const int nodes = static_cast<int>(plan.nodes.size());
    const int per_node = plan.nodes.front().gpus;
    plan.tensor = per_node == 1 && is_power_of_two(nodes) ? nodes : per_node;
    plan.pipeline = all / plan.tensor;
  } else {
    plan.pipeline = std::max(options.pipeline, 1);
    plan.replicas = std::max(options.replicas, 1);
    plan.tensor = options.tensor > 0 ? options.tensor : std::max(1, all / (plan.pipeline * plan.replicas));
  }
}

void check_layout(const LaunchPlan& plan, const std::optional<PlannedShape>& shape) {
  if (!plan.engine.serves()) return;
  const int all = gpus_of(plan.nodes);
  if (plan.tensor * plan.pipeline * plan.replicas != all) {
    throw Error(ErrorCode::kUsage,
                fmt::format("tensor {} x pipeline {} x replicas {} is {} GPUs, but the nodes have {}", plan.tensor,
                            plan.pipeline, plan.replicas, plan.tensor * plan.pipeline * plan.replicas, all),
                fmt::format("--tp {} --pp {}", plan.nodes.front().gpus, plan.nodes.size()));
  }
  if (shape && shape->heads > 0 && shape->heads % plan.tensor != 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} attention heads cannot be split over tensor parallelism {}", shape->heads, plan.tensor),
                fmt::format("--tp 1 --pp {}", all));
  }
  for (const LaunchNode& node : plan.nodes) {
    if (node.gpus == plan.nodes.front().gpus) continue;
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} has {} GPUs, {} has {}", node.name, node.gpus, plan.nodes.front().name,
                            plan.nodes.front().gpus),
                "launch on nodes with the same number of GPUs");
  }
}

// A share of the memory for the engine: what the plan leaves, and never above what the engine's users found safe.
void choose_memory(LaunchPlan& plan, const std::optional<PlannedShape>& shape) {
  LaunchOptions& options = plan.options;
  if (!plan.engine.memory) return;
  const bool unified = plan.nodes.front().unified;
  const double most = unified ? plan.engine.memory->unified_max : plan.engine.memory->discrete_max;
  if (options.utilization > most) {
    plan.notes.push_back(
        fmt::format("--utilization {:.2f} is above {:.2f}, the highest that yoke sets for {} on this memory.",
                    options.utilization, most, plan.engine.name));
  }
  if (options.utilization <= 0) {
    const double share = shape && shape->memory_share > 0 ? shape->memory_share : most;
    options.utilization = std::floor(std::min(share, most) * 100) / 100;
  }
  if (!shape) return;
  if (options.context == 0 && shape->context_max > 0) options.context = shape->context_max;
  if (options.sequences == 0 && shape->sequences_max > 0) {
    options.sequences = static_cast<int>(std::min<std::int64_t>(shape->sequences_max, unified ? 16 : 256));
  }
}

void choose_image(LaunchPlan& plan) {
  plan.image = plan.options.image;
  if (!plan.image.empty()) return;
  for (const EngineImage& image : plan.engine.images) {
    if (plan.nodes.front().gpu_name.find(image.gpu) != std::string::npos) {
      plan.image = image.image;
      return;
    }
  }
}

// "/models/nano/" and "org/nano" are "nano".
std::string last_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

void note_traps(LaunchPlan& plan) {
  for (const EngineTrap& trap : plan.engine.traps) {
    const bool given = std::any_of(plan.options.rest.begin(), plan.options.rest.end(), [&](const std::string& word) {
      return word == trap.word || word.starts_with(trap.word + "=");
    });
    if (given) plan.notes.push_back(fmt::format("{}: {}", trap.word, trap.says));
  }
}

// A line of Open MPI's hostfile: where ssh logs in, as the cluster file says. mpirun knows itself by its own address.
std::string mpi_host_of(const LaunchPlan& plan, std::size_t index) {
  const LaunchNode& node = plan.nodes[index];
  if (index == 0 || node.login_address.empty()) return fmt::format("{} slots={}", node.own_ip, node.gpus);
  std::string line = fmt::format("{} slots={}", node.login_address, node.gpus);
  if (!node.login_user.empty()) line += " username=" + node.login_user;
  if (node.login_port != 22) line += fmt::format(" port={}", node.login_port);
  return line;
}

Variables common_variables(const LaunchPlan& plan) {
  const auto number = [](std::int64_t value) { return value > 0 ? std::to_string(value) : std::string(); };
  const auto flag = [](bool value) { return std::string(value ? "1" : ""); };
  const LaunchNode& head = plan.nodes.front();
  std::vector<std::string> hosts, rpc;
  const int rpc_port = plan.port("rpc_port");
  for (const LaunchNode& node : plan.nodes) {
    hosts.push_back(fmt::format("{}:{}", node.own_ip, node.gpus));
    if (&node != &head) rpc.push_back(fmt::format("{}:{}", node.own_ip, rpc_port));
  }
  Variables all = {
      {"model", plan.options.model},
      {"served_name", plan.options.served_name},
      {"model_name", plan.options.served_name.empty() ? last_part(plan.options.model) : plan.options.served_name},
      {"yoke", plan.options.yoke},
      {"profile", plan.options.profiler == Profiler::kTorch ? plan.options.profile : ""},
      {"nodes", std::to_string(plan.nodes.size())},
      {"ranks", std::to_string(gpus_of(plan.nodes))},
      {"gpus", std::to_string(head.gpus)},
      {"tensor", std::to_string(plan.tensor)},
      {"pipeline", std::to_string(plan.pipeline)},
      {"replicas", std::to_string(plan.replicas)},
      {"context", number(plan.options.context)},
      {"sequences", number(plan.options.sequences)},
      {"utilization", plan.options.utilization > 0 ? fmt::format("{:.2f}", plan.options.utilization) : ""},
      {"head_ip", head.own_ip},
      {"mpi_hosts", fmt::format("{}", fmt::join(hosts, ","))},
      {"rpc_list", fmt::format("{}", fmt::join(rpc, ","))},
      {"omp_threads", std::to_string(std::max(1, head.cores / std::max(1, head.gpus)))},
      {"several", flag(plan.several())},
      {"alone", flag(!plan.several())},
      {"sharded", flag(plan.tensor > 1)},
      {"staged", flag(plan.pipeline > 1)},
      {"replicated", flag(plan.replicas > 1)},
      {"unified", flag(head.unified)},
      {"discrete", flag(!head.unified)},
      {"model_folder", flag(plan.options.model.starts_with('/') || plan.options.model.starts_with("./"))}};
  for (const EnginePort& port : plan.engine.ports) all[port.name] = std::to_string(plan.port(port.name));
  for (const EngineListFile& file : plan.engine.files) all[file.name] = plan.options.scratch + "/" + file.name;
  return all;
}

bool runs_on(RunsOn on, std::size_t node) { return on == RunsOn::kAll || (on == RunsOn::kHead) == (node == 0); }

// The pins, then the engine's variables, then the user's: a later one of the same name takes the place of an earlier.
std::vector<spec::FabricPin> environment_of(const LaunchPlan& plan, std::size_t node) {
  std::vector<spec::FabricPin> all = plan.several() ? plan.nodes[node].pins.set : std::vector<spec::FabricPin>{};
  const auto set = [&](spec::FabricPin pin) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const spec::FabricPin& one) { return one.name == pin.name; });
    if (same == all.end()) {
      all.push_back(std::move(pin));
    } else {
      *same = std::move(pin);
    }
  };
  const Variables variables = node_variables(plan, node);
  for (const EngineVariable& variable : plan.engine.environment) {
    const auto condition = variables.find(variable.when);
    if (!variable.when.empty() && (condition == variables.end() || condition->second.empty())) continue;
    set({variable.name, expand_text(variable.value, variables), variable.reason});
  }
  for (const spec::FabricPin& own : plan.options.environment) set(own);
  return all;
}

std::vector<std::string> waits_of(const LaunchPlan& plan, const EngineProcess& process, std::size_t own) {
  std::vector<std::string> waits;
  if (!process.after_port) return waits;
  for (const EnginePort& port : plan.engine.ports) {
    if (port.name != *process.after_port) continue;
    for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
      if (node == own || !runs_on(port.on, node)) continue;
      waits.push_back(fmt::format("{}:{}", plan.nodes[node].own_ip, plan.port(port.name)));
    }
  }
  return waits;
}

void add_processes(LaunchPlan& plan) {
  std::vector<std::size_t> order;
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) order.push_back(node);
  if (plan.engine.order == "workers-first") std::rotate(order.begin(), order.begin() + 1, order.end());
  for (const std::size_t node : order) {
    for (const EngineProcess& process : plan.engine.processes) {
      if (!runs_on(process.on, node)) continue;
      plan.processes.push_back({.name = process.name,
                                .node = node,
                                .step = process.step,
                                .wait_for = waits_of(plan, process, node),
                                .argv = process_words(plan, process.command, node)});
      if (plan.counts_steps() && !process.step) {
        std::vector<std::string>& argv = plan.processes.back().argv;
        argv = argv_with_progress(argv, plan.options.scratch);
      }
      if (plan.options.profiler == Profiler::kNsys && !process.step) {
        std::vector<std::string>& argv = plan.processes.back().argv;
        argv = argv_under_nsys(argv, plan.options.profile, plan.nodes[node].name);
      }
    }
  }
}

void add_files(LaunchPlan& plan) {
  for (const EngineListFile& file : plan.engine.files) {
    std::string text;
    for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
      text += expand_text(file.line, node_variables(plan, node)) + "\n";
    }
    plan.files.push_back({plan.common.at(file.name), text});
  }
}

// PyTorch's profiler: a switch of the engine's own, or our runner before the script.
void add_profiler(LaunchPlan& plan) {
  if (plan.options.profiler != Profiler::kTorch) return;
  if (plan.engine.profile.empty()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the description of {} has no switch for PyTorch's profiler", plan.engine.name),
                "--profiler nsys, where Nsight Systems is installed");
  }
  if (plan.engine.profile != "script") return;
  plan.options.rest = words_under_profiler(plan.options.rest, plan.options.profile);
  plan.files.push_back({profile_runner_path(plan.options.profile), std::string(profile_runner())});
}

void add_progress(LaunchPlan& plan) {
  if (!plan.counts_steps()) return;
  if (plan.engine.goal != "train") {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("--progress counts steps of training, and {} makes none", plan.engine.name),
                "leave out --progress: a server is asked for a token every 2 s anyway");
  }
  plan.files.push_back({progress_runner_path(plan.options.scratch), std::string(progress_runner())});
}

void check_request(const EngineFile& engine, const LaunchOptions& options, const std::vector<LaunchNode>& nodes) {
  if (nodes.empty()) throw Error(ErrorCode::kUsage, "there is no node to launch on");
  if (engine.serves() && options.model.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} needs a model", engine.name),
                fmt::format("yoke launch {} /models/NAME", engine.name));
  }
  if (engine.rest == "required" && options.rest.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} needs the script to run, after '--'", engine.name), engine.example);
  }
  for (const LaunchNode& node : nodes) {
    if (nodes.size() == 1 || !node.own_ip.empty()) continue;
    throw Error(ErrorCode::kInvalid, fmt::format("the address where {} meets the others is not known", node.name),
                "'yoke link discover' and 'yoke link setup' give the nodes addresses on the link");
  }
}

}  // namespace

int LaunchPlan::port(std::string_view name) const {
  if (name == "port" && options.port) return *options.port;
  for (const EnginePort& port : engine.ports) {
    if (port.name == name) return port.number;
  }
  return 0;
}

std::string LaunchPlan::api_model() const {
  if (engine.ready && !engine.ready->model.empty()) return expand_text(engine.ready->model, common);
  return options.served_name.empty() ? options.model : options.served_name;
}

std::vector<const NodeProcess*> LaunchPlan::of_node(std::size_t node) const {
  std::vector<const NodeProcess*> found;
  for (const NodeProcess& process : processes) {
    if (process.node == node) found.push_back(&process);
  }
  return found;
}

Variables node_variables(const LaunchPlan& plan, std::size_t node) {
  Variables all = plan.common;
  all["node_rank"] = std::to_string(node);
  all["own_ip"] = plan.nodes[node].own_ip;
  all["mpi_host"] = mpi_host_of(plan, node);
  all["head"] = node == 0 ? "1" : "";
  all["worker"] = node == 0 ? "" : "1";
  return all;
}

std::vector<std::string> process_words(const LaunchPlan& plan, const std::vector<CommandWord>& command,
                                       std::size_t node, const Variables& instead) {
  Variables variables = node_variables(plan, node);
  for (const auto& [name, value] : instead) variables[name] = value;
  std::vector<std::string> exports;
  if (node < plan.environment.size()) {
    for (const spec::FabricPin& pin : plan.environment[node]) exports.insert(exports.end(), {"-x", pin.name});
  }
  return expand_words(command, variables, {{"rest", plan.options.rest}, {"mpi_exports", exports}});
}

LaunchPlan plan_launch(const EngineFile& engine, const LaunchOptions& options, const std::vector<LaunchNode>& nodes,
                       const std::optional<PlannedShape>& shape) {
  check_request(engine, options, nodes);
  LaunchPlan plan{.engine = engine, .options = options, .nodes = nodes};
  if (plan.nodes.size() == 1 && plan.nodes.front().own_ip.empty()) plan.nodes.front().own_ip = "127.0.0.1";
  choose_layout(plan, shape);
  check_layout(plan, shape);
  choose_memory(plan, shape);
  choose_image(plan);
  add_profiler(plan);
  add_progress(plan);
  plan.common = common_variables(plan);
  for (std::size_t node = 0; node < nodes.size(); ++node) plan.environment.push_back(environment_of(plan, node));
  add_processes(plan);
  add_files(plan);
  note_traps(plan);
  return plan;
}

}  // namespace yoke::launch
