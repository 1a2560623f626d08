#include "yoke/launch/launch_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "yoke/base/fields.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"
#include "yoke/launch/guard.h"
#include "yoke/launch/modules.h"
#include "yoke/plan/words.h"
#include "yoke/predict/plan_input.h"
#include "yoke/probe/probe.h"
#include "yoke/survey/survey.h"

namespace yoke::launch {
namespace {

constexpr Seconds kFactsLimit{20};

LaunchSetting from_captures(spec::Cluster cluster, const LaunchArguments& arguments) {
  LaunchSetting setting{.cluster = std::move(cluster), .fleet = {}, .machines = {}, .pinned = {}};
  if (arguments.roots.size() == 1) {  // one machine stands for all: to see a launch before the machines are there
    const spec::Machine machine = probe::probe_machine(probe::load_capture(arguments.roots.front()));
    for (std::size_t i = 0; i < setting.cluster->nodes.size(); ++i) {
      setting.machines.push_back(machine);
      setting.pinned.push_back(pin_node(*setting.cluster, i, machine));
    }
    return setting;
  }
  const spec::Survey facts = survey::survey_captures(arguments.roots, setting.cluster);
  for (std::size_t i = 0; i < setting.cluster->nodes.size(); ++i) {
    if (i >= facts.nodes.size() || !facts.nodes[i].machine) {
      throw Error(ErrorCode::kNotFound, fmt::format("there is no capture of {}", setting.cluster->nodes[i].name),
                  "give --root DIR for every node of the cluster file");
    }
    setting.machines.push_back(*facts.nodes[i].machine);
    setting.pinned.push_back(pin_node(*setting.cluster, i, setting.machines.back()));
  }
  return setting;
}

LaunchNode node_of(const LaunchSetting& setting, std::size_t index, const std::optional<int>& gpus) {
  const spec::Machine& machine = setting.machines[index];
  LaunchNode node{.name = setting.cluster ? setting.cluster->nodes[index].name : machine.hostname};
  if (setting.cluster) {
    const spec::ClusterNode& known = setting.cluster->nodes[index];
    node.login_address = known.address;
    node.login_user = known.user.value_or("");
    node.login_port = known.port;
  }
  node.gpus = gpus.value_or(std::max(1, static_cast<int>(machine.gpus.size())));
  node.has_gpu = !machine.gpus.empty();
  node.unified = machine.memory.unified;
  if (!machine.gpus.empty()) node.gpu_name = machine.gpus.front().name;
  node.cores = machine.cpu.cores.value_or(0);
  node.rdma = !machine.rdma_devices.empty();
  if (!setting.pinned.empty()) {
    node.pins = setting.pinned[index].pins;
    node.own_ip = spec::bootstrap_interface(setting.pinned[index].facts).address;
  }
  return node;
}

// A name of the catalogue, a folder, or the last part of a Hub's name.
std::optional<predict::PlannedModel> find_planned(const LaunchArguments& arguments) {
  const std::string text = arguments.plan_as.empty() ? arguments.model.value_or("") : arguments.plan_as;
  for (const std::string& name : {text, std::filesystem::path(text).filename().string()}) {
    if (name.empty()) continue;
    if (const auto found = try_to([&] { return predict::read_planned_model(name); })) return *found;
  }
  if (!arguments.plan_as.empty()) predict::read_planned_model(arguments.plan_as);  // throws what is wrong with it
  return std::nullopt;
}

plan::Request request_of(const LaunchArguments& arguments, const EngineFile& engine, const predict::PlannedModel& model,
                         const LaunchSetting& setting) {
  plan::Request request{.model = *model.language, .image = {}, .format = *plan::find_format("bf16")};
  if (model.format) request.format = *model.format;
  if (!arguments.format.empty()) {
    const plan::WeightFormat* format = plan::find_format(arguments.format);
    if (!format) {
      throw Error(ErrorCode::kUsage, fmt::format("--format cannot be '{}'", printable(arguments.format, 40)),
                  "bf16, fp8, nvfp4, mxfp4, int4, q4_k_m, …");
    }
    request.format = *format;
  }
  request.file_bytes = model.file_bytes;
  request.machines = setting.cluster ? plan::machines_of(*setting.cluster) : plan::machines_of(setting.machines);
  request.engine = from_json<plan::Engine>(Document::string(engine.plan_engine));
  if (!arguments.context.empty()) request.context = plan::parse_count(arguments.context, "--context");
  if (arguments.sequences) request.concurrency = *arguments.sequences;
  request.tensor = arguments.tensor.value_or(0);
  request.pipeline = arguments.pipeline.value_or(0);
  request.replicas = arguments.replicas.value_or(0);
  return request;
}

// What the plan says of the model; refuses one that does not fit.
std::optional<PlannedShape> shape_of(const LaunchArguments& arguments, const EngineFile& engine,
                                     const LaunchSetting& setting) {
  if (arguments.no_plan || engine.plan_engine.empty()) return std::nullopt;
  const auto model = find_planned(arguments);
  if (!model || !model->language) return std::nullopt;
  const plan::Plan made = plan::make_plan(request_of(arguments, engine, *model, setting), plan::shipped_constants());
  if (!made.fits) {
    throw Error(ErrorCode::kExhausted, fmt::format("{} in {} does not fit {}", made.model, made.format, made.machines),
                (made.changes.empty() ? "" : made.changes.front() + "; ") + "--no-plan starts it all the same");
  }
  const plan::PlannedLayout& best = made.layouts.front();
  PlannedShape shape{.tensor = best.layout.tensor,
                     .pipeline = best.layout.pipeline,
                     .replicas = best.layout.replicas,
                     .heads = model->language->heads};
  const double largest =
      model->language->context > 0 ? static_cast<double>(model->language->context) : made.context_max;
  shape.context_max = static_cast<std::int64_t>(std::min(made.context_max, largest));
  shape.sequences_max = static_cast<std::int64_t>(made.sequences_max);
  if (best.memory.capacity > 0) {
    shape.memory_share = 1 - (best.memory.reserve + best.memory.runtime) / best.memory.capacity;
  }
  return shape;
}

spec::FabricPin own_variable(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorCode::kUsage, fmt::format("--env: '{}' is not NAME=VALUE", printable(text, 60)),
                "--env NCCL_DEBUG=INFO");
  }
  const std::string name = text.substr(0, equals);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("TOKEN") || has("PASSWORD") || has("SECRET") || name.ends_with("_KEY")) {
    throw Error(ErrorCode::kUsage, fmt::format("{} does not belong on a command line, where others can read it", name),
                "set it in the environment of each node, or in /etc/yoke/launch/secrets.env with mode 600");
  }
  return {name, text.substr(equals + 1), "Your own setting (--env)."};
}

// Names of runs and projects for experiment trackers; their keys stay where they are.
std::vector<spec::FabricPin> passed_on() {
  constexpr std::array kNames = {"WANDB_PROJECT", "WANDB_ENTITY", "WANDB_NAME",     "WANDB_RUN_GROUP",   "WANDB_TAGS",
                                 "WANDB_MODE",    "WANDB_DIR",    "WANDB_BASE_URL", "TENSORBOARD_LOGDIR"};
  std::vector<spec::FabricPin> all;
  for (const char* name : kNames) {
    const char* value = std::getenv(name);
    if (value && *value) all.push_back({name, value, "Passed on from where yoke was started."});
  }
  return all;
}

}  // namespace

LaunchSetting inspect_nodes(std::optional<spec::Cluster> cluster, const LaunchArguments& arguments) {
  if (!arguments.roots.empty()) return from_captures(std::move(*cluster), arguments);
  LaunchSetting setting;
  setting.cluster = std::move(cluster);
  if (!setting.cluster) {
    setting.machines.push_back(probe::probe_machine(probe::quick_sources_here()));
    return setting;
  }
  setting.fleet = std::make_unique<fleet::Fleet>(setting.cluster->nodes, fleet::NodeOptions{});
  setting.machines = fleet::all_or_throw(setting.fleet->each("looking at the nodes", [](fleet::Node& node) {
    return from_json<spec::Machine>(node.ask("pin-facts", Document::null(), kFactsLimit));
  }));
  for (std::size_t i = 0; i < setting.machines.size(); ++i) {
    setting.pinned.push_back(pin_node(*setting.cluster, i, setting.machines[i]));
  }
  return setting;
}

LaunchPlan plan_of(const LaunchArguments& arguments, const LaunchSetting& setting) {
  const EngineFile engine = load_engine(arguments.engine);
  LaunchOptions options{.model = arguments.model.value_or(""),
                        .served_name = arguments.served_name,
                        .tensor = arguments.tensor.value_or(0),
                        .pipeline = arguments.pipeline.value_or(0),
                        .replicas = arguments.replicas.value_or(0),
                        .sequences = arguments.sequences.value_or(0),
                        .utilization = arguments.utilization.value_or(0),
                        .port = arguments.port,
                        .image = arguments.image,
                        .environment = {},
                        .rest = arguments.rest,
                        .progress = arguments.progress};
  // Slurm's nodes start it by its path, as their PATH is the site's. Elsewhere it is carried, or in the container.
  if (arguments.through == "slurm") options.yoke = std::filesystem::read_symlink("/proc/self/exe").native();
  if (!arguments.context.empty()) {
    options.context = static_cast<std::int64_t>(plan::parse_count(arguments.context, "--context"));
  }
  options.environment = passed_on();
  for (const std::string& text : arguments.environment) options.environment.push_back(own_variable(text));
  options.modules = parse_modules(arguments.modules);
  const bool contained = arguments.through == "docker" || arguments.through == "apptainer";
  if (!options.modules.empty() && (contained || arguments.through == "kubernetes")) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--modules are the host's, and --through {} does not see them", arguments.through),
                "leave out --modules, or use --through ssh, script or slurm");
  }
  if (!arguments.image.empty() && !contained && arguments.through != "kubernetes") {
    throw Error(ErrorCode::kUsage,
                fmt::format("--image is for containers, and --through {} starts what is installed on the nodes",
                            arguments.through),
                "--through docker, apptainer or kubernetes; or leave out --image");
  }
  if (arguments.progress.value > 0 && arguments.through == "kubernetes") {
    throw Error(ErrorCode::kUnsupported, "--progress needs yoke's guard beside the ranks, and pods have none",
                "--through ssh, script, docker, apptainer or slurm");
  }
  if (arguments.profile) {
    if (arguments.through == "slurm" || arguments.through == "kubernetes" || arguments.unit) {
      throw Error(ErrorCode::kUnsupported, "--profile collects its traces over ssh",
                  "--through ssh or --through docker");
    }
    options.profiler = arguments.profiler == "nsys" ? Profiler::kNsys : Profiler::kTorch;
    options.profile = "/var/tmp/yoke-profile-" + random_token_hex(16);
  }
  options.scratch += "-" + random_token_hex(16);
  std::vector<LaunchNode> nodes;
  for (std::size_t i = 0; i < setting.machines.size(); ++i) nodes.push_back(node_of(setting, i, arguments.gpus));
  return plan_launch(engine, options, nodes, shape_of(arguments, engine, setting));
}

ThroughOptions through_options(const LaunchArguments& arguments, const LaunchSetting& setting) {
  ThroughOptions options{.partition = arguments.partition,
                         .account = arguments.account,
                         .time_limit = arguments.time_limit,
                         .gpu_request = !arguments.no_gres,
                         .rdma_resource = arguments.rdma_resource,
                         .hugepages = arguments.hugepages,
                         .folder = arguments.folder};
  const spec::Machine& head = setting.machines.front();
  options.floor = arguments.floor.value >= 0 ? arguments.floor
                                             : usual_floor(head.memory.total.value_or(Bytes{0}), head.memory.unified);
  const Bytes total = head.memory.total.value_or(Bytes{0});
  if (options.floor.value > 0 && total > options.floor) options.limit = Bytes{total.value - options.floor.value};
  return options;
}

}  // namespace yoke::launch
