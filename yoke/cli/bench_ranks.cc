#include "yoke/cli/bench_ranks.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/bench/bare_exchange.h"
#include "yoke/cli/bench_events.h"
#include "yoke/comm/local/local.h"
#include "yoke/comm/mpi/mpi.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/comm/nccl/nccl.h"
#include "yoke/comm/nccl/plain.h"
#include "yoke/cuda/driver.h"
#include "yoke/job/job.h"
#include "yoke/rank/mpirun.h"
#include "yoke/rank/rank_part.h"

namespace yoke {
namespace {

constexpr const char* kBenchPart = "bench-rank";
constexpr const char* kBenchVariable = "YOKE_BENCH_TASK";

// Ranks as threads of this process: rank 0 in the caller's, so that what the sink throws ends here.
CollectiveRun run_threads(int count, const CollectiveOptions& options, CollectiveSink* sink) {
  auto ranks = make_local(count, {.operation_timeout = options.timeout});
  std::vector<std::jthread> others;
  std::vector<std::exception_ptr> unexpected(ranks.size());
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    others.emplace_back([&, rank] {
      try {
        run_collective_bench(*ranks[rank], options, facts_of_this_process(static_cast<int>(rank)));
      } catch (const Error&) {
        // Rank 0 has it: an Error of one rank reaches all.
      } catch (...) {
        unexpected[rank] = std::current_exception();
      }
    });
  }
  CollectiveRun run = run_collective_bench(*ranks[0], options, facts_of_this_process(0), {.sink = sink});
  others.clear();  // joins
  for (const std::exception_ptr& exception : unexpected) {
    if (exception) std::rethrow_exception(exception);
  }
  return run;
}

// What each rank is to do, for its environment.
std::string task_text(const RankRequest& request, const CollectiveOptions& options) {
  Document task = Document::map({{"transport", to_document(request.transport)},
                                 {"beside", to_document(request.beside)},
                                 {"options", to_json(options)}});
  if (request.cluster) task.add("cluster", to_json(*request.cluster));
  return print_json(task, JsonLayout::kOneLine);
}

CollectiveRun run_job_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink) {
  EventReader reader(sink);
  const std::vector<ClusterNode> nodes = request.cluster ? request.cluster->nodes : std::vector{this_machine()};
  JobSpec spec{.name = fmt::format("bench-{}-{}", to_string(options.kind), random_token_hex(2)),
               .nodes = spread_ranks(nodes, rank_count(request)),
               .argv = {"yoke", kBenchPart},
               .own_program = true,
               .environment = {{kBenchVariable, task_text(request, options)}},
               .oversubscribe = request.oversubscribe,
               .oversubscribe_option = "--oversubscribe",
               .output_form = OutputForm::kFirstRankRaw};
  spec.reached = request.reached;
  spec.on_output = [&](const RankOutput& output) {
    if (output.rank == 0 && output.stream == OutputStream::kOut) {
      reader.take(output.text);
    } else {
      fmt::print(stderr, "{}/{} | {}\n", output.node, output.rank, output.text);
    }
  };
  spec.on_event = [](const JobEvent& event) {
    if (event.kind == JobEvent::Kind::kNotice) fmt::print(stderr, "yoke: {}\n", event.text);
  };
  std::optional<Error> cause;
  try {
    Job job(std::move(spec));
    const JobOutcome outcome = job.wait();
    if (outcome.cause) cause = outcome.cause->error;
  } catch (const Error& error) {  // also Ctrl-C: the rows that came are kept
    cause = error;
  }
  return reader.finish(cause);
}

RankRequest read_task(const Document& task, CollectiveOptions& options) {
  const auto need = [&](std::string_view key) -> const Document& {
    const Document* found = task.find(key);
    if (!found) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", kBenchVariable, key));
    return *found;
  };
  RankRequest request{.transport = from_document<Transport>(need("transport")),
                      .beside = from_document<Beside>(need("beside"))};
  if (const Document* cluster = task.find("cluster")) request.cluster = cluster_from_json(*cluster);
  options = collective_options_from_json(need("options"));
  return request;
}

BesideLibrary beside_mpi(const std::shared_ptr<MpiSession>& mpi, Seconds timeout) {
  if (!mpi) throw Error(ErrorCode::kUsage, "--beside mpi needs ranks that MPI started", "run it under mpirun");
  return {.name = mpi->version(), .run = [mpi, timeout](const Collective& operation) {
            mpi->plain_all_reduce(operation, Deadline::after(timeout));
          }};
}

BesideLibrary beside_nccl(World& world) {
  const bool is_first = world.place().rank == 0;
  std::string id = is_first ? make_nccl_id() : std::string(kNcclIdSize, '\0');
  broadcast(world.control(), id.data(), id.size(), DType::kI8, 0);
  auto plain = std::make_shared<PlainNccl>(world.device(), world.place().rank, world.place().size, id);
  return {.name = "plain " + plain->version(),
          .run = [plain](const Collective& operation) { plain->all_reduce(operation); }};
}

BesideLibrary beside_socket(World& world, Seconds timeout) {
  const std::vector<HalfEndpoint> endpoints = world.endpoints();
  const std::string address = endpoints.empty() ? "127.0.0.1" : endpoints.front().address;
  auto exchange = std::make_shared<BareExchange>(world.comm(), address, timeout);
  return {.name = "a bare socket exchange",
          .run = [exchange](const Collective& operation) { exchange->run(operation); },
          .checked = false};
}

void tell_gpu(const CudaDevice& device, RankFacts& facts) {
  facts.device_name = device.name();
  facts.bus = device.bus();
  facts.memory = device.has_unified_memory() ? RankMemory::kUnified : RankMemory::kGpu;
  // Of unified memory the host knows better what is available: it can drop its caches.
  if (facts.memory == RankMemory::kGpu)
    facts.gpu_memory_available = static_cast<std::int64_t>(device.memory_available());
}

// The GPU of this rank, where its memory is measured, and a stream there.
struct GpuLane {
  GpuLane(World& world, bool wanted) : lane{.comm = world.comm(), .control = world.control()} {
    if (!wanted) return;
    device.emplace(world.device());
    stream.emplace(*device);
    lane.stream = stream->stream();
    lane.device = &*device;
  }
  std::optional<CudaDevice> device;
  std::optional<CudaStream> stream;
  Lane lane;
};

}  // namespace

int rank_count(const RankRequest& request) {
  if (request.ranks > 0) return request.ranks;
  return request.cluster ? static_cast<int>(request.cluster->nodes.size()) : 2;
}

Carrier carrier_of(const RankRequest& request) {
  const Carrier chosen = carrier_of(request.transport);
  if (chosen != Carrier::kAuto) return chosen;
  if (request.beside == Beside::kNccl) return Carrier::kNccl;  // the same memory for both
  // To compare with MPI, something else must carry our data.
  return request.beside == Beside::kMpi ? Carrier::kDirect : Carrier::kAuto;
}

CollectiveRun run_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink) {
  if (request.transport == Transport::kThreads) return run_threads(rank_count(request), options, sink);
  if (request.transport == Transport::kMpi || request.beside == Beside::kMpi) {
    EventReader reader(sink);
    const auto done = try_to([&] {
      run_under_mpirun({.ranks = rank_count(request),
                        .cluster = request.cluster,
                        .part = kBenchPart,
                        .variable = kBenchVariable,
                        .task = task_text(request, options),
                        .on_output = [&](std::string_view bytes) { reader.take(bytes); }});
    });
    // What rank 0 says of its own failure is nearer to the cause than how mpirun ended for it.
    const bool explained = done || reader.failed();
    return reader.finish(explained ? std::nullopt : std::optional(done.error()));
  }
  return run_job_ranks(request, options, sink);
}

std::optional<CollectiveRun> run_as_rank(const RankPlace& place, const RankRequest& request,
                                         const CollectiveOptions& options, CollectiveSink* sink) {
  const auto world = join_world(place, {.carrier = carrier_of(request),
                                        .communicator = {.operation_timeout = options.timeout},
                                        .cluster = request.cluster});
  std::optional<BesideLibrary> beside;
  if (request.beside == Beside::kMpi) beside = beside_mpi(world->mpi(), options.timeout);
  if (request.beside == Beside::kSocket) beside = beside_socket(*world, options.timeout);
  if (request.beside == Beside::kNccl) beside = beside_nccl(*world);
  const GpuLane gpu(*world, carrier_of(request) == Carrier::kNccl);
  RankFacts facts = facts_of_this_process(place.local_rank);
  if (gpu.device) tell_gpu(*gpu.device, facts);
  const bool is_first = place.rank == 0;
  try {
    CollectiveRun run = run_collective_bench(
        gpu.lane, options, facts, {.sink = is_first ? sink : nullptr, .beside = beside ? &*beside : nullptr});
    if (run.failure && place.origin == RankOrigin::kYoke) world->recover(to_error(*run.failure));
    if (!is_first) return std::nullopt;
    return run;
  } catch (const Error& error) {
    if (place.origin == RankOrigin::kYoke) world->recover(error);  // throws what ended the job, which knows more
    throw;
  }
}

std::optional<int> run_bench_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{kBenchPart}) return std::nullopt;
  return run_rank_part([] {
    const Environment environment = environment_now();
    const auto place = find_rank_place(environment);
    const auto task = environment.find(kBenchVariable);
    if (!place || task == environment.end()) {
      throw Error(ErrorCode::kUsage, "bench-rank is started by 'yoke bench', not by hand");
    }
    CollectiveOptions options;
    const RankRequest request = read_task(parse_json(task->second, kBenchVariable), options);
    EventWriter events;
    run_as_rank(*place, request, options, &events);
  });
}

}  // namespace yoke
