#include "yoke/bench/collective_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/result.h"
#include "yoke/bench/bench_rank.h"
#include "yoke/bench/run_events.h"
#include "yoke/rank/start.h"

namespace yoke::bench {
namespace {

constexpr const char* kBenchKind = "bench";

Document task_of(const RankRequest& request, const CollectiveOptions& options) {
  Document task = Document::map({{"transport", to_document(request.transport)},
                                 {"baseline", to_document(request.baseline)},
                                 {"options", to_json(options)}});
  if (request.cluster) task.add("cluster", spec::to_json(*request.cluster));
  return task;
}

RankRequest read_task(const Document& task, CollectiveOptions& options) {
  const auto need = [&](std::string_view key) -> const Document& {
    const Document* found = task.find(key);
    if (!found)
      throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", rank::kRankTaskVariable, key));
    return *found;
  };
  RankRequest request{.transport = from_json<rank::Transport>(need("transport")),
                      .baseline = from_json<Baseline>(need("baseline"))};
  if (const Document* cluster = task.find("cluster")) request.cluster = from_json<spec::Cluster>(*cluster);
  options = from_json<CollectiveOptions>(need("options"));
  return request;
}

rank::WorldOptions world_of(const RankRequest& request, const CollectiveOptions& options) {
  return {.transport = transport_of(request),
          .communicator = {.operation_timeout = options.timeout},
          .cluster = request.cluster};
}

// The part of one rank; rank 0 returns the run, the others nothing.
std::optional<CollectiveRun> measure_rank(rank::World& world, const RankRequest& request,
                                          const CollectiveOptions& options, CollectiveSink* sink) {
  const BenchRank bench_rank(world, request, options.timeout);
  const bool is_first = world.place().rank == 0;
  try {
    CollectiveRun run = run_collective_bench(bench_rank.context(), options, bench_rank.facts(),
                                             {.sink = is_first ? sink : nullptr, .baseline = bench_rank.baseline()});
    if (run.failure && world.recovers()) world.recover(to_error(*run.failure));
    if (!is_first) return std::nullopt;
    return run;
  } catch (const Error& error) {
    if (world.recovers()) world.recover(error);  // throws what ended the job, which knows more
    throw;
  }
}

CollectiveRun run_threads(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink) {
  std::optional<CollectiveRun> result;
  const auto measure = [&](rank::World& world) {
    if (world.place().rank == 0) {
      result = measure_rank(world, request, options, sink);
      return;
    }
    try {
      measure_rank(world, request, options, nullptr);
    } catch (const Error&) {
      // Rank 0 has it: an Error of one rank reaches all.
    }
  };
  rank::Ranks::start({.starter = rank::RankStarter::kThreads,
                      .ranks = rank_count(request),
                      .here = measure,
                      .world = world_of(request, options)})
      ->wait();
  return std::move(*result);
}

void run_bench_rank(const job::RankPlace& place, const Document& task) {
  CollectiveOptions options;
  const RankRequest request = read_task(task, options);
  EventWriter events([](std::string_view line) {
    const UniqueFd standard_output(dup(STDOUT_FILENO));
    write_all(standard_output, line, "standard output");
  });
  run_as_rank(place, request, options, &events);
}

}  // namespace

CollectiveRun run_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink) {
  auto on_notice = request.on_notice;
  if (!on_notice) on_notice = [](const std::string& notice) { fmt::print(stderr, "yoke: {}\n", notice); };
  rank::RankStarter starter = rank::rank_starter(request.transport, std::nullopt);
  if (request.baseline == Baseline::kMpi) starter = rank::RankStarter::kMpirun;
  if (starter == rank::RankStarter::kThreads) return run_threads(request, options, sink);
  EventReader reader(sink);
  const auto done = try_to([&] {  // also Ctrl-C: the rows that came are kept
    rank::Ranks::start({.name = fmt::format("bench-{}", comm::to_string(options.kind)),
                        .task = {.kind = kBenchKind, .content = task_of(request, options)},
                        .starter = starter,
                        .ranks = rank_count(request),
                        .cluster = request.cluster,
                        .oversubscribe = request.oversubscribe,
                        .oversubscribe_option = "--oversubscribe",
                        .reached = request.reached,
                        .on_output = [&](std::string_view bytes) { reader.take(bytes); },
                        .on_notice = on_notice})
        ->wait();
  });
  // What rank 0 says of its own failure is nearer to the cause than how mpirun ended for it.
  const bool explained = done || (starter == rank::RankStarter::kMpirun && reader.failed());
  return reader.finish(explained ? std::nullopt : std::optional(done.error()));
}

std::optional<CollectiveRun> run_as_rank(const job::RankPlace& place, const RankRequest& request,
                                         const CollectiveOptions& options, CollectiveSink* sink) {
  std::optional<CollectiveRun> result;
  rank::Ranks::start({.starter = rank::RankStarter::kLauncher,
                      .place = place,
                      .here = [&](rank::World& world) { result = measure_rank(world, request, options, sink); },
                      .world = world_of(request, options)})
      ->wait();
  return result;
}

rank::RankKind collective_rank_kind() {
  return {.name = kBenchKind, .started_by = "yoke bench", .run = run_bench_rank};
}

}  // namespace yoke::bench
