#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/launch/engine_file.h"
#include "yoke/launch/guard.h"
#include "yoke/launch/node_pins.h"
#include "yoke/launch/recipe.h"
#include "yoke/launch/through.h"
#include "yoke/survey/survey.h"

namespace yoke::cli {

namespace {

int list_engines(Session& session) {
  Document list = Document::list();
  std::string text;
  for (const std::string& name : launch::engine_names()) {
    const launch::EngineFile engine = launch::load_engine(name);
    list.items.push_back(Document::map({{"name", Document::string(name)},
                                        {"title", Document::string(engine.title)},
                                        {"goal", Document::string(engine.goal)},
                                        {"program", Document::string(engine.program)}}));
    text += fmt::format("{:<16} {}\n", name, engine.title);
  }
  if (session.json) {
    session.print_json(Document::map({{"engines", std::move(list)}}));
  } else {
    session.print(text +
                  "\nA description: yoke launch show NAME. A copy of it can be changed and started by its path.\n");
  }
  return kExitOk;
}

int show_engine(Session& session, const std::string& name) {
  const launch::EngineFile engine = launch::load_engine(name);
  const bool is_file = name.ends_with(".yaml") || name.ends_with(".yml");
  session.print(is_file ? read_file(name) : std::string(launch::engine_text(engine.name).value_or("")));
  return kExitOk;
}

int review_script(Session& session, const std::string& file) {
  const std::string problem = launch::find_double_launch(read_file(file, Bytes{1 << 20}));
  if (problem.empty()) {
    session.print("No double start found.\n");
    return kExitOk;
  }
  throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", file, problem),
              "--ntasks-per-node=1: one task for each node; the launcher starts a process for each GPU. "
              "'yoke launch torchrun --through slurm --dry-run -- SCRIPT' prints such a script");
}

int convert(Session& session, const std::string& file) {
  const launch::ConvertedRecipe recipe = launch::convert_recipe(read_file(file, Bytes{1 << 20}), file);
  session.warn(recipe.notes);
  session.print(recipe.description);
  return kExitOk;
}

}  // namespace

CommandRow launch_convert_command() {
  return {.name = "convert",
          .summary = "turn a recipe of spark-vllm-docker or sparkrun into a description",
          .description =
              "Reads a recipe (version 1 or 2) and prints the description of an engine that runs the same "
              "command. What the launcher sets (ranks, addresses, ports) is taken out. Hooks and mods of the "
              "recipe are named and not run.",
          .examples = {{"yoke launch convert recipe.yaml > mine.yaml", "then: yoke launch ./mine.yaml MODEL"}},
          .prepare = [](OptionTable& table) -> Action {
            auto file = std::make_shared<std::string>();
            table.positional("FILE", "the recipe", *file, Presence::kRequired);
            return [file](Session& session) { return convert(session, *file); };
          }};
}

CommandRow launch_list_command() {
  return {.name = "list",
          .summary = "the engines that yoke can start",
          .description = "Lists the shipped descriptions of engines.",
          .examples = {{"yoke launch list", "their names"}},
          .prepare = [](OptionTable&) -> Action { return [](Session& session) { return list_engines(session); }; }};
}

CommandRow launch_show_command() {
  return {.name = "show",
          .summary = "print the description of an engine",
          .description =
              "Prints the description of an engine as a file to copy and change. docs/launch.md explains "
              "its keys.",
          .examples = {{"yoke launch show vllm > my-vllm.yaml", "a copy to change"}},
          .prepare = [](OptionTable& table) -> Action {
            auto name = std::make_shared<std::string>();
            table.positional("ENGINE", "its name", *name, Presence::kRequired, launch::engine_names());
            return [name](Session& session) { return show_engine(session, *name); };
          }};
}

CommandRow launch_guard_command() {
  return {
      .name = "guard",
      .summary = "run one program and stop it before it takes the last memory of the machine",
      .description =
          "Runs a program and looks at the machine's available memory twenty times a second. Below the floor it kills "
          "the program and all its descendants, and says what they held and which options to lower. It also ends "
          "the program if one of its processes is stopped by a signal, or if --canary is given and no token comes "
          "for 8 s, or if the head of --follow is gone. 'yoke launch' runs every engine so; units and scripts call it "
          "themselves.",
      .examples = {{"yoke launch guard --floor 8GiB -- vllm serve /models/m", "by hand"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<launch::GuardOptions>();
        auto port = std::make_shared<std::optional<int>>();
        table.value("--floor", "SIZE", "of available memory; 0: memory is not watched", options->floor);
        table.value("--limit", "SIZE", "of a control group around the program, where one can be made", options->limit);
        table.values("--lower", "OPTION", "name this option when memory runs out; may be repeated", options->lower);
        table.values("--wait-for", "ADDRESS:PORT", "start when this answers; may be repeated", options->wait_for);
        table.value("--canary", "PORT", "ask for one token there, every two seconds", *port, {.min = 1, .max = 65535});
        table.value("--canary-model", "NAME", "the model's name in that question", options->canary_model);
        table.value("--canary-limit", "TIME", "without a token (8s unless given)", options->canary_limit);
        table.value("--start-limit", "TIME", "until the first token (30min unless given)", options->start_limit);
        table.value("--follow", "ADDRESS:PORT", "end when this, once it has answered, is silent for 10 s",
                    options->follow);
        table.value("--progress", "FOLDER", "where ranks count their steps, as 'yoke launch --progress' makes them",
                    options->progress);
        table.value("--progress-limit", "TIME", "of --progress: without a step", options->progress_limit);
        table.value("--container", "NAME", "a Docker container to end too", options->container);
        table.value("--remove", "FOLDER", "remove this folder when the program has ended", options->remove);
        table.rest("PROGRAM", "what to run, with its arguments", options->argv);
        return [options, port](Session&) {
          options->canary_port = *port;
          return launch::run_guard(*options);
        };
      }};
}

CommandRow launch_review_command() {
  return {.name = "review",
          .summary = "look whether a batch script of Slurm starts every GPU's process twice",
          .description =
              "Refuses a script with a task for each GPU where each task starts torchrun, accelerate or "
              "deepspeed for all GPUs.",
          .examples = {{"yoke launch review train.sbatch", "before sbatch"}},
          .prepare = [](OptionTable& table) -> Action {
            auto file = std::make_shared<std::string>();
            table.positional("FILE", "the batch script", *file, Presence::kRequired);
            return [file](Session& session) { return review_script(session, *file); };
          }};
}

// yoke launch env: the variables that make engines use the rails, for a shell's eval.

namespace {

struct EnvOptions {
  std::optional<std::string> node;
  std::vector<std::string> roots;
};

std::vector<std::string> node_names(const spec::Cluster& cluster) {
  std::vector<std::string> names;
  for (const spec::ClusterNode& node : cluster.nodes) names.push_back(node.name);
  return names;
}

// The place of --node, else of the machine that we are on.
int chosen_place(const spec::Cluster& cluster, const EnvOptions& options, fleet::Fleet& fleet) {
  const std::vector<std::string> names = node_names(cluster);
  if (options.node) {
    const auto found = std::find(names.begin(), names.end(), *options.node);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    throw Error(ErrorCode::kNotFound,
                fmt::format("the cluster '{}' has no node '{}'", cluster.name, printable(*options.node, 60)),
                suggest(*options.node, names, "nodes"));
  }
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    if (fleet[i].is_here()) return fleet[i].index();
  }
  throw Error(ErrorCode::kUsage, fmt::format("this machine is no node of the cluster '{}'", cluster.name),
              fmt::format("yoke launch env --node {}", names.front()));
}

std::vector<launch::PinnedNode> pins_of_captures(const Session& session, const EnvOptions& options) {
  const spec::Cluster cluster = load_session_cluster(session);
  const spec::Survey facts = survey::survey_captures(options.roots, cluster);
  std::vector<launch::PinnedNode> pinned;
  for (std::size_t i = 0; i < facts.nodes.size() && i < cluster.nodes.size(); ++i) {
    if (facts.nodes[i].machine) pinned.push_back(launch::pin_node(cluster, i, *facts.nodes[i].machine));
  }
  return pinned;
}

int print_env(Session& session, const EnvOptions& options) {
  std::vector<launch::PinnedNode> pinned;
  if (!options.roots.empty()) {
    pinned = pins_of_captures(session, options);
    if (options.node) std::erase_if(pinned, [&](const auto& node) { return node.node != *options.node; });
  } else {
    const spec::Cluster cluster = load_session_cluster(session);
    fleet::Fleet all(cluster.nodes, fleet::NodeOptions{});
    fleet::Fleet chosen(cluster.nodes, {chosen_place(cluster, options, all)}, fleet::NodeOptions{});
    pinned = launch::pin_nodes(session.json && !options.node ? all : chosen, cluster);
    for (const launch::PinnedNode& node : pinned) {
      if (node.failure && !session.json) throw Error(*node.failure);
    }
  }
  if (session.json) {
    Document nodes = Document::list();
    for (const launch::PinnedNode& node : pinned) nodes.items.push_back(launch::to_json(node));
    session.print_json(Document::map({{"nodes", std::move(nodes)}}));
    return kExitOk;
  }
  for (const launch::PinnedNode& node : pinned) session.print(launch::shell_text(node));
  return kExitOk;
}

}  // namespace

CommandRow launch_env_command() {
  return {
      .name = "env",
      .summary = "print the variables that make engines use the rails, for eval",
      .description =
          "Prints the environment that yoke gives to ranks and engines of this node, computed now from the node's "
          "facts: which RDMA devices NCCL and UCX use, where ranks meet, which subnets Open MPI uses. Each line has "
          "its reason. If the node has an own setting in its environment, /etc/environment, /etc/nccl.conf or a "
          "profile, that value stays and the line shows it. With --json all nodes are printed.",
      .examples = {{"eval \"$(yoke launch env)\"", "in a shell on a node"},
                   {"yoke launch env --node spark-2", "of another node"},
                   {"yoke launch env --json", "of all nodes, with reasons"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<EnvOptions>();
        table.value("--node", "NAME", "of this node instead of the machine that we are on", options->node);
        table.values("--root", "DIR", "from captures instead (may be repeated)", options->roots);
        return [options](Session& session) { return print_env(session, *options); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
