// yoke launch: existing engines on the nodes of a cluster. Parse, call, print; the work is in yoke/launch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/launch/launch_input.h"
#include "yoke/launch/slurm_nodes.h"
#include "yoke/remote/quote.h"

namespace yoke::cli {
namespace {

Document files_json(const launch::LaunchPlan& plan, const std::vector<launch::RenderedFile>& files) {
  Document processes = Document::list(), rendered = Document::list();
  for (const launch::NodeProcess& process : plan.processes) {
    Document argv = Document::list(), environment = Document::map();
    for (const std::string& word : process.argv) argv.items.push_back(Document::string(word));
    for (const spec::FabricPin& pin : plan.environment[process.node])
      environment.add(pin.name, Document::string(pin.value));
    processes.items.push_back(Document::map({{"node", Document::string(plan.nodes[process.node].name)},
                                             {"name", Document::string(process.name)},
                                             {"argv", std::move(argv)},
                                             {"environment", std::move(environment)}}));
  }
  for (const launch::RenderedFile& file : files) {
    rendered.items.push_back(
        Document::map({{"name", Document::string(file.name)}, {"text", Document::string(file.text)}}));
  }
  return Document::map({{"engine", Document::string(plan.engine.name)},
                        {"image", Document::string(plan.image)},
                        {"tensor", Document::number(std::int64_t{plan.tensor})},
                        {"pipeline", Document::number(std::int64_t{plan.pipeline})},
                        {"replicas", Document::number(std::int64_t{plan.replicas})},
                        {"processes", std::move(processes)},
                        {"files", std::move(rendered)}});
}

void write_files(Session& session, const std::string& folder, const std::vector<launch::RenderedFile>& files) {
  for (const launch::RenderedFile& file : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.name;
    make_folder(path.parent_path());
    write_file_atomically(path, file.text, {.mode = file.mode});
    if (!session.json) session.print(fmt::format("Written: {}\n", path.native()));
  }
}

int submit(Session& session, const launch::RenderedFile& script) {
  const Outcome outcome = run({.argv = {"sbatch", "--parsable"}, .input = script.text, .timeout = Seconds{60}});
  if (!outcome.ok()) {
    throw Error(ErrorCode::kUnavailable, "sbatch " + outcome.describe(), "--dry-run prints the script without Slurm");
  }
  const std::string job(trim(outcome.out));
  if (session.json) {
    session.print_json(Document::map({{"slurm_job", Document::string(job)}}));
  } else {
    session.print(fmt::format("Slurm's job is {}. See: squeue -j {}. End it: scancel {}\n", job, job, job));
  }
  return kExitOk;
}

int launch_engine(Session& session, const launch::LaunchArguments& arguments) {
  const launch::Through through = launch::through_from(arguments.through);
  launch::LaunchSetting setting = launch::inspect_nodes(
      arguments.roots.empty() ? read_session_cluster(session) : load_session_cluster(session), arguments);
  const launch::LaunchPlan plan = launch::plan_of(arguments, setting);
  if (!session.quiet) session.warn(launch::overrides_text(setting.pinned));
  session.warn(plan.notes);
  const launch::ThroughOptions options = launch::through_options(arguments, setting);
  const bool files_only = arguments.unit || arguments.output || arguments.dry_run ||
                          through == launch::Through::kScript || through == launch::Through::kKubernetes ||
                          !arguments.roots.empty();
  if (!files_only && through != launch::Through::kSlurm) {
    if (const auto status = launch::preflight_launch(session, arguments, setting, plan)) return *status;
    return launch::run_launch(session, arguments, setting, plan);
  }
  const auto files =
      arguments.unit ? launch::render_units(through, plan, options) : launch::render(through, plan, options);
  if (!files_only) {
    std::vector<std::string> names;
    for (const launch::LaunchNode& node : plan.nodes) names.push_back(node.name);
    const auto findings = launch::slurm_findings(names);
    if (!findings.empty() && !arguments.no_preflight) return launch::refuse_launch(session, plan, findings);
    return submit(session, files.front());
  }
  if (arguments.output && !arguments.dry_run) write_files(session, *arguments.output, files);
  if (session.json) {
    session.print_json(files_json(plan, files));
  } else if (arguments.dry_run || !arguments.output) {
    for (const launch::RenderedFile& file : files) {
      session.print(fmt::format("{}==> {} <==\n{}", &file == &files.front() ? "" : "\n", file.name, file.text));
    }
  }
  return kExitOk;
}

void declare_shape(OptionTable& table, launch::LaunchArguments& a) {
  table.value("--tp", "N", "tensor parallelism (from the plan unless given)", a.tensor, {.min = 1, .max = 4096});
  table.value("--pp", "N", "pipeline stages", a.pipeline, {.min = 1, .max = 4096});
  table.value("--dp", "N", "data parallelism", a.replicas, {.min = 1, .max = 4096});
  table.value("--gpus", "N", "processes for each node (its GPUs unless given)", a.gpus, {.min = 1, .max = 64});
  table.value("--context", "TOKENS", "the longest sequence, such as 32k (from the plan unless given)", a.context);
  table.value("--requests", "N", "sequences at once (from the plan unless given)", a.sequences,
              {.min = 1, .max = 65536});
  table.value("--utilization", "SHARE", "the engine's share of memory (from the plan unless given)", a.utilization,
              {.min = 0.05, .max = 0.99});
  table.value("--format", "FORMAT", "of the weights, for the plan: bf16, fp8, nvfp4, int4, …", a.format);
  table.value("--plan-as", "MODEL", "plan with this model of the catalogue", a.plan_as);
  table.flag("--no-plan", "start without a plan, also what does not fit", a.no_plan);
}

void declare_start(OptionTable& table, launch::LaunchArguments& a) {
  table.choice("--through", "WAY", "how to start it (ssh unless given)", launch::through_names(), a.through);
  table.flag("--dry-run", "print everything and start nothing", a.dry_run);
  table.value("-o,--output", "FOLDER", "write the files there and start nothing", a.output);
  table.flag("--unit", "systemd units that start it on boot, after the link", a.unit);
  table.value("--port", "PORT", "of the HTTP API", a.port, {.min = 1, .max = 65535});
  table.value("--served-name", "NAME", "the model's name in the API", a.served_name);
  table.value("--image", "IMAGE", "the container's image", a.image);
  table.values("--env", "NAME=VALUE", "set in the engine's environment; may be repeated", a.environment);
  table.value("--folder", "FOLDER", "the folder to run in, on every node", a.folder);
  table.value("--floor", "SIZE", "stop the engine below so much available memory; 0: never", a.floor);
  table.value("--restarts", "N", "starts after a failure (4 for servers, 0 for training)", a.restarts,
              {.min = 0, .max = 100});
  table.value("--pause", "TIME", "before the first new start, doubled each time (30s unless given)", a.pause);
  table.value("--progress", "TIME", "end training that makes no step for so long, and name the rank (never)",
              a.progress);
  table.flag("--no-preflight", "do not look at engine, model, ports and links first", a.no_preflight);
  table.value("--modules", "NAMES", "environment modules to load first, such as 'cuda/12.4 nccl/2.20'", a.modules);
  table.value("--profile", "FOLDER", "trace the run, and collect the traces of all nodes there", a.profile);
  table.choice("--profiler", "NAME", "of --profile: torch (PyTorch's own) or nsys (torch)", {"torch", "nsys"},
               a.profiler);
  table.value("--partition", "NAME", "of Slurm", a.partition);
  table.value("--account", "NAME", "of Slurm", a.account);
  table.value("--time-limit", "TIME", "of Slurm, such as 04:00:00", a.time_limit);
  table.flag("--no-gres", "do not ask Slurm for GPUs, where the site has no GRES", a.no_gres);
  table.value("--rdma-resource", "NAME", "of Kubernetes, such as rdma/hca_shared_devices_a", a.rdma_resource);
  table.value("--hugepages", "SIZE", "of Kubernetes: huge pages of 2 MiB for each pod (none)", a.hugepages);
  table.values("--root", "DIR", "facts from captures instead of the nodes; one stands for all nodes", a.roots);
}

}  // namespace

CommandRow launch_command() {
  return {
      .name = "launch",
      .summary = "start vLLM, SGLang, TensorRT-LLM, torchrun and others on the cluster, and keep them alive",
      .description =
          "Starts an existing engine on all nodes of the cluster: the command of every rank, the variables that make "
          "it "
          "use the rails, memory options from the plan, a guard on each node. Before the start yoke looks whether the "
          "engine, the model and the ports are as they must be on every node, and runs 'yoke check' without measuring. "
          "Lines of the nodes come with the node in front. If a rank fails, hangs or takes the last memory, yoke names "
          "it, stops all ranks and starts them again, with growing pauses. Ctrl-C ends everything on all nodes.\n\n"
          "ENGINE is a name of 'yoke launch list', or a description of your own (a file that ends in .yaml). What "
          "follows '--' goes to the engine.",
      .examples = {{"yoke launch vllm /models/llama-3.1-405b-int4 --context 32k", "on all nodes, over ssh"},
                   {"yoke launch vllm /models/qwen3-32b --dry-run --through docker", "print the docker lines"},
                   {"yoke launch torchrun -- train.py --epochs 1", "one process for each GPU of each node"},
                   {"yoke launch nemo --through slurm --dry-run -- --recipe NAME", "the batch script"},
                   {"yoke launch show vllm > my-vllm.yaml", "a description to change"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<launch::LaunchArguments>();
        table.positional("ENGINE", "a name of 'yoke launch list', or a file", arguments->engine, Presence::kRequired);
        table.positional("MODEL", "a folder that every node has, or a name that the engine knows", arguments->model,
                         Presence::kOptional);
        declare_start(table, *arguments);
        declare_shape(table, *arguments);
        table.rest("WORDS", "further options of the engine, or the script", arguments->rest);
        return [arguments](Session& session) { return launch_engine(session, *arguments); };
      },
      .subcommands = {launch_convert_command(), launch_list_command(), launch_show_command(), launch_env_command(),
                      launch_guard_command(), launch_review_command()},
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
