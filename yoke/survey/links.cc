#include "yoke/survey/links.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/progress.h"
#include "yoke/link/expectation.h"
#include "yoke/link/processor_load.h"
#include "yoke/survey/load_watch.h"

namespace yoke::survey {
namespace {

constexpr std::int64_t kSmall = 16 << 10;
constexpr std::int64_t kLarge = 16 << 20;
constexpr Seconds kLoadWindow{0.1};

void measure_pairs(fleet::Fleet& fleet, const std::vector<link::NodePair>& pairs, link::MeasureOptions options,
                   link::LinkTestResult& result) {
  int phases = 0;
  for (const link::NodePair& pair : pairs) phases += link::phase_count(pair);
  Progress progress("measuring the link", phases);
  int done = 0;
  options.on_phase = [&](std::string_view what) { progress.update(done++, what); };
  for (const link::NodePair& pair : pairs) {
    result.pairs.push_back(link::measure_pair(fleet.at_place(pair.a), fleet.at_place(pair.b), pair, options));
  }
}

class AllReduceProgress final : public bench::CollectiveSink {
 public:
  void begin(const bench::CollectiveRun&) override { progress_.update(0); }
  void row(const bench::CollectiveRun& run, const bench::CollectiveRow&) override {
    progress_.update(static_cast<std::int64_t>(run.rows.size()));
  }
  void end(const bench::CollectiveRun&) override {}

 private:
  Progress progress_{"a real all-reduce", 2};
};

struct MeasuredAllReduce {
  Result<bench::CollectiveRun> run;
  std::string transport;
  std::optional<std::string> nccl_failure = {};  // it is there, and sockets had to take its place
};

// Why there is no result; nothing where there is one.
std::optional<Error> failure_in(const Result<bench::CollectiveRun>& run) {
  if (!run) return run.error();
  if (run->failure) return bench::to_error(*run->failure);
  if (run->rows.empty()) return Error(ErrorCode::kInternal, "it gave no result");
  return std::nullopt;
}

// A node without a GPU or without NCCL is no fault: sockets are what it has.
bool is_missing(const Error& error) {
  return error.code() == ErrorCode::kUnsupported || error.code() == ErrorCode::kNotFound;
}

// What was measured by RDMA is compared with what uses it, where there is a GPU.
enum class AllReduceBy { kSockets, kNcclIfThere };
MeasuredAllReduce measure_all_reduce(fleet::Fleet& fleet, const RunCollective& run_collective, AllReduceBy by) {
  const bench::CollectiveOptions options{.kind = comm::CollectiveKind::kAllReduce,
                                         .size_min = {kSmall},
                                         .size_max = {kLarge},
                                         .factor = kLarge / kSmall,
                                         .iterations = 20,
                                         .warmup_iterations = 3};
  AllReduceProgress progress;
  std::vector<std::shared_ptr<fleet::Node>> reached;
  for (std::size_t i = 0; i < fleet.size(); ++i) reached.push_back(fleet.share(i));
  const auto run_by = [&](rank::Transport transport) {
    auto run = try_to([&] { return run_collective(transport, options, reached, &progress); });
    throw_if_interrupted();
    return run;
  };
  std::optional<std::string> nccl_failure;
  if (by == AllReduceBy::kNcclIfThere) {
    auto run = run_by(rank::Transport::kNccl);
    const auto failure = failure_in(run);
    if (!failure) return {std::move(run), "nccl"};
    if (!is_missing(*failure)) nccl_failure = failure->message();
  }
  return {run_by(rank::Transport::kDirect), "direct", nccl_failure};
}

// What other programs take of this machine's processors, while we take nothing.
double taken_now() {
  const link::ProcessorTimes before = link::read_processor_times();
  real_clock().sleep(kLoadWindow);
  return link::taken_share(link::load_between(before, link::read_processor_times()), 0);
}

// Raw links may be healthy and collectives over them slow, so a real one is run too.
void run_all_reduce(fleet::Fleet& fleet, const RunCollective& run_collective, link::LinkTestResult& result) {
  for (const link::PairResult& pair : result.pairs) {
    if (!pair.failures.empty()) {
      result.all_reduce_missing =
          fmt::format("rail {} between {} and {} carries nothing", pair.failures.front().rail, pair.a, pair.b);
      return;
    }
  }
  const double taken_before = taken_now();
  LoadWatch watch(fleet);
  const auto [measured, transport, nccl_failure] =
      measure_all_reduce(fleet, run_collective,
                         result.pairs.front().transport == "rdma" ? AllReduceBy::kNcclIfThere : AllReduceBy::kSockets);
  const double taken_meanwhile = watch.taken();
  const double taken_after = taken_now();
  result.all_reduce_failure = nccl_failure;
  if (const auto failure = failure_in(measured)) {
    result.all_reduce_missing = failure->message();
    result.all_reduce_failure = failure->message();
    return;
  }
  const bench::CollectiveRun& run = *measured;
  const bench::CollectiveRow& small = run.rows.front();
  const bench::CollectiveRow& large = run.rows.back();
  result.all_reduce = link::AllReduceResult{.ranks = static_cast<int>(run.ranks.size()),
                                            .transport = transport,
                                            .small_time = {small.out_of_place.stats.p50 / 1e6},
                                            .large_size = {large.size},
                                            .large_bus_bandwidth = {large.out_of_place.bus_bandwidth * 1e9},
                                            .taken = std::max({taken_before, taken_meanwhile, taken_after})};
}

}  // namespace

std::vector<int> nodes_in(const std::vector<link::NodePair>& pairs) {
  std::vector<int> nodes;
  for (const link::NodePair& pair : pairs) {
    for (const int node : {pair.a, pair.b}) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::optional<Error> why_not_measured(const spec::Cluster& cluster) {
  if (cluster.nodes.size() < 2) return Error(ErrorCode::kUnsupported, "there is one node, and no link");
  for (const spec::ClusterNode& node : cluster.nodes) {
    if (!node.rails.empty()) continue;
    return Error(ErrorCode::kUnsupported, fmt::format("the cluster file lists no rails of {}", node.name),
                 "'yoke link discover -o cluster.yaml --force' finds them");
  }
  return std::nullopt;
}

link::LinkTestResult survey_links(fleet::Fleet& fleet, const spec::Cluster& cluster,
                                  const std::vector<link::NodePair>& pairs, const LinkSurveyOptions& options) {
  link::LinkTestResult result{.cluster = cluster.name, .expected = link::expectation_of(cluster)};
  link::MeasureOptions measure = options.measure;
  if (result.expected) measure.expected = result.expected->rail_rate;
  fleet.reach_all();
  measure_pairs(fleet, pairs, measure, result);
  result.all_reduce_missing = options.no_collective;
  if (!options.no_collective.empty()) return result;
  run_all_reduce(fleet, options.run_collective, result);
  if (!result.all_reduce || !options.seems_slow || !options.seems_slow(result)) return result;
  // As with the rails: one that seems slow is run once more, and both are kept.
  link::AllReduceResult first = *result.all_reduce;
  run_all_reduce(fleet, options.run_collective, result);
  if (result.all_reduce) {
    first.large_bus_bandwidth_again = result.all_reduce->large_bus_bandwidth;
    first.taken = std::max(first.taken, result.all_reduce->taken);
    result.all_reduce = first;
  }
  return result;
}

}  // namespace yoke::survey
