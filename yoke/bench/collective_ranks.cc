#include "yoke/bench/collective_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/result.h"
#include "yoke/bench/rank_lane.h"
#include "yoke/bench/run_events.h"
#include "yoke/rank/start.h"

namespace yoke {
namespace {

constexpr const char* kBenchKind = "bench";

Document task_of(const RankRequest& request, const CollectiveOptions& options) {
  Document task = Document::map({{"transport", to_document(request.transport)},
                                 {"beside", to_document(request.beside)},
                                 {"options", to_json(options)}});
  if (request.cluster) task.add("cluster", to_json(*request.cluster));
  return task;
}

RankRequest read_task(const Document& task, CollectiveOptions& options) {
  const auto need = [&](std::string_view key) -> const Document& {
    const Document* found = task.find(key);
    if (!found) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", kRankTaskVariable, key));
    return *found;
  };
  RankRequest request{.transport = from_document<Transport>(need("transport")),
                      .beside = from_document<Beside>(need("beside"))};
  if (const Document* cluster = task.find("cluster")) request.cluster = cluster_from_json(*cluster);
  options = collective_options_from_json(need("options"));
  return request;
}

WorldOptions world_of(const RankRequest& request, const CollectiveOptions& options) {
  return {.carrier = carrier_of(request),
          .communicator = {.operation_timeout = options.timeout},
          .cluster = request.cluster};
}

// The part of one rank; rank 0 returns the run, the others nothing.
std::optional<CollectiveRun> measure_rank(World& world, const RankRequest& request, const CollectiveOptions& options,
                                          CollectiveSink* sink) {
  const RankLane lane(world, request, options.timeout);
  const bool is_first = world.place().rank == 0;
  try {
    CollectiveRun run = run_collective_bench(lane.lane(), options, lane.facts(),
                                             {.sink = is_first ? sink : nullptr, .beside = lane.beside()});
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
  const auto measure = [&](World& world) {
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
  Ranks::start({.starter = RankStarter::kThreads,
                .ranks = rank_count(request),
                .here = measure,
                .world = world_of(request, options)})
      ->wait();
  return std::move(*result);
}

void run_bench_rank(const RankPlace& place, const Document& task) {
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
  RankStarter starter = rank_starter(request.transport, std::nullopt);
  if (request.beside == Beside::kMpi) starter = RankStarter::kMpirun;
  if (starter == RankStarter::kThreads) return run_threads(request, options, sink);
  EventReader reader(sink);
  const auto done = try_to([&] {  // also Ctrl-C: the rows that came are kept
    Ranks::start({.name = fmt::format("bench-{}", to_string(options.kind)),
                  .task = {.kind = kBenchKind, .content = task_of(request, options)},
                  .starter = starter,
                  .ranks = rank_count(request),
                  .cluster = request.cluster,
                  .oversubscribe = request.oversubscribe,
                  .oversubscribe_option = "--oversubscribe",
                  .reached = request.reached,
                  .on_output = [&](std::string_view bytes) { reader.take(bytes); },
                  .on_notice = [](const std::string& notice) { fmt::print(stderr, "yoke: {}\n", notice); }})
        ->wait();
  });
  // What rank 0 says of its own failure is nearer to the cause than how mpirun ended for it.
  const bool explained = done || (starter == RankStarter::kMpirun && reader.failed());
  return reader.finish(explained ? std::nullopt : std::optional(done.error()));
}

std::optional<CollectiveRun> run_as_rank(const RankPlace& place, const RankRequest& request,
                                         const CollectiveOptions& options, CollectiveSink* sink) {
  std::optional<CollectiveRun> result;
  Ranks::start({.starter = RankStarter::kLauncher,
                .place = place,
                .here = [&](World& world) { result = measure_rank(world, request, options, sink); },
                .world = world_of(request, options)})
      ->wait();
  return result;
}

RankKind collective_rank_kind() { return {.name = kBenchKind, .started_by = "yoke bench", .run = run_bench_rank}; }

}  // namespace yoke
