// yoke link test: what the halves between the nodes really carry.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/progress.h"
#include "yoke/cli/bench_ranks.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/link_judge.h"
#include "yoke/cli/link_text.h"
#include "yoke/link/expectation.h"
#include "yoke/link/measure_pair.h"

namespace yoke {
namespace {

constexpr std::int64_t kSmall = 16 << 10;
constexpr std::int64_t kLarge = 16 << 20;

struct TestArguments {
  std::string seconds_text;
  std::optional<std::string> node, half;
  std::string transport = "auto";
  int streams = 0;
  bool no_all_reduce = false;
};

void check(const TestArguments& arguments) {
  if (arguments.streams < 0 || arguments.streams > 64) {
    throw Error(ErrorCode::kUsage, fmt::format("--streams cannot be {}", arguments.streams), "1 to 64");
  }
}

Seconds time_of(const std::string& text) {
  if (text.empty()) return {2};
  const auto parsed = parse_seconds(text.find_first_not_of("0123456789.") == std::string::npos ? text + "s" : text);
  if (!parsed) throw Error(ErrorCode::kUsage, "--seconds: " + parsed.error().message(), "--seconds 2, or 500ms");
  if (parsed->value < 0.1 || parsed->value > 3600) {
    throw Error(ErrorCode::kUsage, fmt::format("--seconds cannot be {}", text), "0.1 to 3600");
  }
  return *parsed;
}

// Only the nodes that take part are reached.
std::vector<int> nodes_in(const std::vector<NodePair>& pairs) {
  std::vector<int> nodes;
  for (const NodePair& pair : pairs) {
    for (const int node : {pair.a, pair.b}) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }
  return nodes;
}

void measure_pairs(const Cluster& cluster, const std::vector<NodePair>& pairs, MeasureOptions options,
                   LinkTestResult& result) {
  int phases = 0;
  for (const NodePair& pair : pairs) phases += phase_count(pair);
  Progress progress("measuring the link", phases);
  int done = 0;
  options.on_phase = [&](std::string_view what) { progress.update(done++, what); };
  const std::vector<int> indices = nodes_in(pairs);
  std::vector<ClusterNode> nodes;
  for (const int index : indices) nodes.push_back(cluster.nodes[static_cast<std::size_t>(index)]);
  const auto agents = start_agents(nodes, indices, AgentRights::kOwn);
  const auto agent_of = [&](int node) -> NodeAgent& {
    return *agents[static_cast<std::size_t>(std::find(indices.begin(), indices.end(), node) - indices.begin())];
  };
  for (const NodePair& pair : pairs) {
    result.pairs.push_back(measure_pair(agent_of(pair.a), agent_of(pair.b), pair, options));
  }
}

class AllReduceProgress final : public CollectiveSink {
 public:
  void begin(const CollectiveRun&) override { progress_.update(0); }
  void row(const CollectiveRun& run, const CollectiveRow&) override {
    progress_.update(static_cast<std::int64_t>(run.rows.size()));
  }
  void end(const CollectiveRun&) override {}

 private:
  Progress progress_{"a real all-reduce", 2};
};

struct MeasuredAllReduce {
  Result<CollectiveRun> run;
  std::string carrier;
  std::optional<std::string> nccl_failure = {};  // it is there, and sockets had to take its place
};

// Why there is no result; nothing where there is one.
std::optional<Error> failure_in(const Result<CollectiveRun>& run) {
  if (!run) return run.error();
  if (run->failure) return to_error(*run->failure);
  if (run->rows.empty()) return Error(ErrorCode::kInternal, "it gave no result");
  return std::nullopt;
}

// A node without a GPU or without NCCL is no fault: sockets are what it has.
bool is_missing(const Error& error) {
  return error.code() == ErrorCode::kUnsupported || error.code() == ErrorCode::kNotFound;
}

// What was measured by RDMA is compared with what uses it, where there is a GPU.
enum class AllReduceBy { kSockets, kNcclIfThere };
MeasuredAllReduce measure_all_reduce(const Cluster& cluster, AllReduceBy by) {
  const CollectiveOptions options{.kind = CollectiveKind::kAllReduce,
                                  .least = {kSmall},
                                  .most = {kLarge},
                                  .factor = kLarge / kSmall,
                                  .iterations = 20,
                                  .warmup_iterations = 3};
  AllReduceProgress progress;
  const auto run_by = [&](Transport transport) {
    auto run = try_to([&] { return run_ranks({.transport = transport, .cluster = cluster}, options, &progress); });
    throw_if_interrupted();
    return run;
  };
  std::optional<std::string> nccl_failure;
  if (by == AllReduceBy::kNcclIfThere) {
    auto run = run_by(Transport::kNccl);
    const auto failure = failure_in(run);
    if (!failure) return {std::move(run), "nccl"};
    if (!is_missing(*failure)) nccl_failure = failure->message();
  }
  return {run_by(Transport::kDirect), "direct", nccl_failure};
}

// Raw links may be healthy and collectives over them slow, so a real one is run too.
void run_all_reduce(const Cluster& cluster, LinkTestResult& result) {
  for (const PairResult& pair : result.pairs) {
    if (!pair.failures.empty()) {
      result.all_reduce_missing =
          fmt::format("half {} between {} and {} carries nothing", pair.failures.front().half, pair.a, pair.b);
      return;
    }
  }
  const auto [measured, carrier, nccl_failure] = measure_all_reduce(
      cluster, result.pairs.front().transport == "rdma" ? AllReduceBy::kNcclIfThere : AllReduceBy::kSockets);
  result.all_reduce_failure = nccl_failure;
  if (const auto failure = failure_in(measured)) {
    result.all_reduce_missing = failure->message();
    result.all_reduce_failure = failure->message();
    return;
  }
  const CollectiveRun& run = *measured;
  const CollectiveRow& small = run.rows.front();
  const CollectiveRow& large = run.rows.back();
  result.all_reduce = AllReduceResult{.ranks = static_cast<int>(run.ranks.size()),
                                      .carrier = carrier,
                                      .small_time = {small.out_of_place.stats.p50 / 1e6},
                                      .large_size = {large.size},
                                      .large_bus_bandwidth = {large.out_of_place.bus_bandwidth * 1e9}};
}

// As with the halves: one that seems slow is run once more, and the faster one counts.
void judge_result(const Cluster& cluster, const std::vector<NodePair>& pairs, LinkTestResult& result) {
  result.findings = judge_link_test(result, cluster, pairs);
  const bool seems_slow = std::any_of(result.findings.begin(), result.findings.end(),
                                      [](const Finding& finding) { return finding.rule == "collective-slow"; });
  if (!seems_slow) return;
  const AllReduceResult first = *result.all_reduce;
  run_all_reduce(cluster, result);
  if (result.all_reduce && result.all_reduce->large_bus_bandwidth < first.large_bus_bandwidth) {
    result.all_reduce = first;
  }
  result.findings = judge_link_test(result, cluster, pairs);
}

int measure(Session& session, const TestArguments& arguments) {
  check(arguments);
  const Seconds time = time_of(arguments.seconds_text);
  const Cluster cluster = load_session_cluster(session);
  const std::vector<NodePair> pairs = pairs_of(cluster, {.node = arguments.node, .half = arguments.half});
  LinkTestResult result{.cluster = cluster.name, .expected = expectation_of(cluster)};
  MeasureOptions options{.time = time,
                         .streams = arguments.streams,
                         .transport = from_document<TransportChoice>(Document::string(arguments.transport))};
  if (result.expected) options.expected = result.expected->half_rate;
  measure_pairs(cluster, pairs, options, result);
  if (arguments.no_all_reduce) {
    result.all_reduce_missing = "--no-all-reduce was given";
  } else if (arguments.node || arguments.half) {
    result.all_reduce_missing = "it would use all nodes and halves, and only some were asked for";
  } else {
    run_all_reduce(cluster, result);
  }
  judge_result(cluster, pairs, result);
  if (session.json) {
    session.print_json(to_json(result));
  } else {
    session.print(link_test_text(result));
  }
  return result.findings.empty() ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow link_test_command() {
  return {
      .name = "test",
      .summary = "measure every half: bandwidth, latency, errors, and what it means",
      .description =
          "Measures what joins the nodes: each half alone in each direction, all halves together in one window, then "
          "both directions at once; the latency of messages from 8 B to 64 KB; error counters before and after; the "
          "processor time it takes. By RDMA (perftest) where the machines have it, else by TCP, and then it says "
          "why. Last, a short real all-reduce tells a slow collective from a slow link. Each half is measured on "
          "its own interface, whatever the routes say. The verdict is against fabric.half_rate of the cluster file "
          "or the catalogue: exit status 0 healthy, 1 findings. Nothing is changed.",
      .examples = {{"yoke link test", "all halves between all nodes, about 20 s a pair"},
                   {"yoke link test --seconds 10 --half A", "one half, longer"},
                   {"yoke link test --node spark-2 --json", "what joins one node, for a script"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<TestArguments>();
        table.value("--seconds", "N", "how long each measurement takes (2)", arguments->seconds_text);
        table.value("--half", "HALF", "only this half: A, B", arguments->half);
        table.value("--node", "NODE", "only what joins this node", arguments->node);
        table.choice("--transport", "KIND", "auto, tcp or rdma (auto)", {"auto", "tcp", "rdma"}, arguments->transport);
        table.value("--streams", "N", "TCP connections for each half (1; 4 above 10 Gb/s)", arguments->streams);
        table.flag("--no-all-reduce", "leave out the all-reduce", arguments->no_all_reduce);
        return [arguments](Session& session) { return measure(session, *arguments); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke
