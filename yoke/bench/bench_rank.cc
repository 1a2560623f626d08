#include "yoke/bench/bench_rank.h"

#include <memory>

#include "yoke/base/error.h"
#include "yoke/bench/socket_baseline.h"
#include "yoke/comm/mpi/mpi.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/comm/nccl/nccl.h"
#include "yoke/comm/nccl/plain.h"

namespace yoke::bench {
namespace {

BaselineLibrary mpi_baseline(const std::shared_ptr<comm::mpi::MpiSession>& mpi, Seconds timeout) {
  if (!mpi) throw Error(ErrorCode::kUsage, "--compare-with mpi needs ranks that MPI started", "run it under mpirun");
  return {.name = mpi->version(), .run = [mpi, timeout](const comm::Collective& operation) {
            mpi->plain_all_reduce(operation, Deadline::after(timeout));
          }};
}

BaselineLibrary nccl_baseline(rank::World& world) {
  const bool is_first = world.place().rank == 0;
  std::string id = is_first ? comm::nccl::make_nccl_id() : std::string(comm::nccl::kNcclIdSize, '\0');
  comm::broadcast(world.control(), id.data(), id.size(), tensor::DType::kI8, 0);
  auto plain = std::make_shared<comm::nccl::PlainNccl>(world.device(), world.place().rank, world.place().size, id);
  return {.name = "plain " + plain->version(),
          .run = [plain](const comm::Collective& operation) { plain->all_reduce(operation); }};
}

BaselineLibrary socket_baseline(rank::World& world, Seconds timeout) {
  const std::vector<spec::RailEndpoint> endpoints = world.endpoints();
  const std::string address = endpoints.empty() ? "127.0.0.1" : endpoints.front().address;
  auto exchange = std::make_shared<SocketBaseline>(world.comm(), address, timeout);
  return {.name = "a bare socket exchange",
          .run = [exchange](const comm::Collective& operation) { exchange->run(operation); },
          .checked = false};
}

std::optional<BaselineLibrary> make_baseline(rank::World& world, Baseline baseline, Seconds timeout) {
  switch (baseline) {
    case Baseline::kMpi:
      return mpi_baseline(world.mpi(), timeout);
    case Baseline::kSocket:
      return socket_baseline(world, timeout);
    case Baseline::kNccl:
      return nccl_baseline(world);
    default:
      return std::nullopt;
  }
}

void report_gpu(const cuda::CudaDevice& device, RankFacts& facts) {
  facts.device_name = device.name();
  facts.bus = device.bus();
  facts.memory = device.has_unified_memory() ? RankMemory::kUnified : RankMemory::kGpu;
  // Of unified memory the host knows better what is available: it can drop its caches.
  if (facts.memory == RankMemory::kGpu)
    facts.gpu_memory_available = static_cast<std::int64_t>(device.memory_available());
}

}  // namespace

BenchRank::BenchRank(rank::World& world, const RankRequest& request, Seconds timeout)
    : baseline_(make_baseline(world, request.baseline, timeout)),
      context_{.comm = world.comm(), .control = world.control()},
      facts_(facts_of_this_process(world.place().local_rank)) {
  if (transport_of(request) != rank::Transport::kNccl) return;
  device_.emplace(world.device());
  stream_.emplace(*device_);
  context_.stream = stream_->stream();
  context_.device = &*device_;
  report_gpu(*device_, facts_);
}

}  // namespace yoke::bench
