// yoke job run: any program as ranks on the nodes of a cluster, or on this machine. List and stop are in job_list.cc.
#include "yoke/job/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/fleet/fleet.h"
#include "yoke/job/job_output.h"
#include "yoke/launch/node_pins.h"

namespace yoke::cli {
namespace {

constexpr int kNotGiven = std::numeric_limits<int>::min();

struct RunOptions {
  int ranks = kNotGiven;
  int ranks_per_node = kNotGiven;
  std::string policy = "stop";
  int max_restarts = job::JobSpec{}.restarts_total;
  std::vector<std::string> environment;
  std::optional<std::string> name;
  std::optional<std::string> folder;
  bool no_prefix = false;
  bool no_pins = false;
  bool oversubscribe = false;
  Seconds timeout{0};
  std::vector<std::string> argv;
};

// Before anything is made for a rank: the number comes from an option.
int rank_count(std::size_t nodes, const RunOptions& options) {
  const bool each = options.ranks_per_node != kNotGiven;
  const std::int64_t ranks = options.ranks != kNotGiven
                                 ? options.ranks
                                 : static_cast<std::int64_t>(nodes) * (each ? options.ranks_per_node : 1);
  if (ranks <= limits::kRanks) return static_cast<int>(ranks);
  throw Error(ErrorCode::kUsage,
              fmt::format("{} ranks are more than the {} that a job may have", ranks, limits::kRanks),
              each ? "give fewer with --ranks-per-node" : "give fewer with --ranks");
}

job::Variable parse_variable(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorCode::kUsage, fmt::format("--env: '{}' is not NAME=VALUE", printable(text, 60)),
                "--env OMP_NUM_THREADS=4");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void check(const Session& session, const RunOptions& options) {
  if (options.argv.empty()) {
    throw Error(ErrorCode::kUsage, "there is no program to run", "yoke job run -- hostname");
  }
  const bool ranks_given = options.ranks != kNotGiven;
  const bool ranks_per_node_given = options.ranks_per_node != kNotGiven;
  if (ranks_given && ranks_per_node_given) {
    throw Error(ErrorCode::kUsage, "--ranks and --ranks-per-node cannot both be given");
  }
  const auto refuse = [](std::string_view option, int number) {
    throw Error(ErrorCode::kUsage, fmt::format("{} must be at least 1", option), fmt::format("{} was given", number));
  };
  if (session.json && options.no_prefix) {
    throw Error(ErrorCode::kUsage, "--json and --no-prefix cannot both be given",
                "with --json the lines of the ranks are on standard error, prefixed");
  }
  if (options.max_restarts < 0) {
    throw Error(ErrorCode::kUsage, fmt::format("--max-restarts {} makes no sense", options.max_restarts),
                "100 is usual");
  }
  if (ranks_given && options.ranks < 1) refuse("--ranks", options.ranks);
  if (ranks_per_node_given && options.ranks_per_node < 1) refuse("--ranks-per-node", options.ranks_per_node);
}

bool has_rails(const spec::Cluster& cluster) {
  return cluster.nodes.size() > 1 && std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                                                 [](const spec::ClusterNode& node) { return !node.rails.empty(); });
}

// The places in the cluster file of a job's nodes.
std::vector<int> places_of(const spec::Cluster& cluster, const job::JobSpec& spec) {
  std::vector<int> places;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const auto is_it = [&](const job::JobNode& node) { return node.node.name == cluster.nodes[i].name; };
    if (std::any_of(spec.nodes.begin(), spec.nodes.end(), is_it)) places.push_back(static_cast<int>(i));
  }
  return places;
}

// Why the job cannot start: in the same words as the job has them, so that a dead node is not waited for twice.
std::optional<Error> not_reached(fleet::Fleet& fleet, const std::vector<launch::PinnedNode>& pinned) {
  std::vector<std::string> messages;
  std::optional<Error> first;
  for (std::size_t i = 0; i < pinned.size(); ++i) {
    if (!pinned[i].failure || fleet[i].logged_in()) continue;
    if (!first) first = pinned[i].failure;
    messages.push_back(pinned[i].failure->message());
  }
  if (messages.size() < 2) return first;
  return Error(
      first->code(),
      fmt::format("{} of {} nodes cannot be used: {}", messages.size(), pinned.size(), fmt::join(messages, "; ")),
      first->hint());
}

// Gives the ranks of each node its pins. What keeps the job from its start is returned.
std::optional<Error> pin_ranks(const Session& session, const spec::Cluster& cluster, fleet::Fleet& fleet,
                               job::JobSpec& spec) {
  const std::vector<launch::PinnedNode> pinned = launch::pin_nodes(fleet, cluster);
  if (auto error = not_reached(fleet, pinned)) return error;
  std::vector<std::string> notes = launch::overrides_text(pinned);
  for (std::size_t i = 0; i < pinned.size(); ++i) {
    spec.reached.push_back(fleet.share(i));
    if (pinned[i].failure) {
      notes.push_back(fmt::format("{} gets no pins: {}", pinned[i].node, pinned[i].failure->message()));
    }
    for (job::JobNode& node : spec.nodes) {
      if (node.node.name == pinned[i].node) node.environment = launch::variables_of(pinned[i].pins);
    }
  }
  if (!session.quiet) session.warn(notes);
  return std::nullopt;
}

int run_job(Session& session, const RunOptions& options) {
  check(session, options);
  std::optional<spec::Cluster> cluster;
  std::vector<spec::ClusterNode> nodes = {job::this_machine()};
  if ((cluster = read_session_cluster(session))) {
    nodes = cluster->nodes;
    if (rank_count(nodes.size(), options) > 1) note_omitted_rails(session, *cluster);
  }
  job::JobSpec spec{.name = options.name.value_or(""),
                    .nodes = job::spread_ranks(nodes, rank_count(nodes.size(), options)),
                    .argv = options.argv,
                    .own_program = options.argv.front() == "yoke",
                    .folder = options.folder,
                    .policy = options.policy == "restart" ? job::JobPolicy::kRestart : job::JobPolicy::kStop,
                    .restarts_max = std::min(job::JobSpec{}.restarts_max, options.max_restarts),
                    .restarts_total = options.max_restarts,
                    .oversubscribe = options.oversubscribe,
                    .oversubscribe_option = "--oversubscribe"};
  for (const std::string& text : options.environment) spec.environment.push_back(parse_variable(text));
  if (options.timeout.value > 0) spec.time_limit = options.timeout;
  const job::OutputStyle lines = options.no_prefix ? job::OutputStyle::kPlain : job::OutputStyle::kPrefixed;
  job::JobOutput output(session, session.json ? job::OutputStyle::kErrors : lines);
  output.show(spec);
  std::optional<fleet::Fleet> fleet;
  if (cluster && has_rails(*cluster) && !options.no_pins && spec.nodes.size() > 1) {
    fleet.emplace(cluster->nodes, places_of(*cluster, spec), fleet::NodeOptions{});
    if (const auto error = pin_ranks(session, *cluster, *fleet, spec)) {
      return output.report(
          options.name.value_or(options.argv.front()),
          {.exit_status = error->exit_status(),
           .cause = job::JobCause{
               .kind = job::CauseKind::kNotStarted, .exit_status = error->exit_status(), .error = *error}});
    }
  }
  job::Job job(std::move(spec));
  return output.report(job.name(), job.wait());
}

CommandRow job_run_command() {
  return {
      .name = "run",
      .summary = "run a program as ranks on the nodes of the cluster",
      .description =
          "Starts the program on every node of the cluster file (one rank for each node unless --ranks is given), or "
          "without a cluster file on this machine. The ranks find their place in the environment, as torchrun and "
          "mpirun give it; over several nodes they also get the variables that make NCCL, Gloo, UCX and Open MPI use "
          "the rails ('yoke launch env' prints them with their reasons; your own settings win). Their output comes by "
          "line, with node and rank in front. The first rank that fails ends "
          "the job, and its exit status is ours; with --policy restart it is started again. With --json the lines "
          "go to standard error, and how the job ended to standard output. When this command ends, by itself or by "
          "Ctrl-C or a signal, nothing of the job is left on any node. The program 'yoke' is this very program, "
          "carried to nodes that lack it.",
      .examples = {{"yoke job run -- hostname", "one rank on every node"},
                   {"yoke job run --ranks 4 -- python3 train.py", "four ranks, as evenly as the nodes allow"},
                   {"yoke job run --policy restart -- ./worker", "a worker that dies is started again"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<RunOptions>();
        table.value("--ranks", "N", "how many ranks in all", options->ranks);
        table.value("--ranks-per-node", "N", "how many on each node (1 unless given)", options->ranks_per_node);
        table.choice("--policy", "POLICY", "what the first failure does (stop unless given)", {"stop", "restart"},
                     options->policy);
        table.value("--max-restarts", "N", "with --policy restart: at most so many in all (100 unless given)",
                    options->max_restarts);
        table.values("--env", "NAME=VALUE", "add to the environment of the ranks; may be repeated",
                     options->environment);
        table.value("--folder", "FOLDER", "the folder to run in, on every node", options->folder);
        table.value("--name", "NAME", "how the job is called in 'yoke job list'", options->name);
        table.flag("--no-pins", "do not set the variables that make NCCL, Gloo, UCX and MPI use the rails",
                   options->no_pins);
        table.flag("--no-prefix", "show the lines of the ranks as they are", options->no_prefix);
        table.flag("--oversubscribe", "allow more than four ranks for each core", options->oversubscribe);
        table.value("--timeout", "TIME", "end the job after this long", options->timeout);
        table.rest("PROGRAM", "what to run, with its arguments", options->argv);
        return [options](Session& session) { return run_job(session, *options); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace

CommandRow job_command() {
  return {.name = "job",
          .summary = "programs as ranks on the nodes of a cluster",
          .description =
              "A job is a program that runs as ranks on the nodes of a cluster: started together, watched, "
              "and ended together.",
          .examples = {{"yoke job run -- hostname", "one rank on every node"},
                       {"yoke job list", "which jobs run from here"},
                       {"yoke job stop --all", "end them"}},
          .prepare = {},
          .subcommands = {job_run_command(), job_list_command(), job_stop_command()}};
}

}  // namespace yoke::cli
