#include "yoke/bench/rank_lane.h"

#include <memory>

#include "yoke/base/error.h"
#include "yoke/bench/bare_exchange.h"
#include "yoke/comm/mpi/mpi.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/comm/nccl/nccl.h"
#include "yoke/comm/nccl/plain.h"

namespace yoke {
namespace {

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

std::optional<BesideLibrary> make_beside(World& world, Beside beside, Seconds timeout) {
  switch (beside) {
    case Beside::kMpi:
      return beside_mpi(world.mpi(), timeout);
    case Beside::kSocket:
      return beside_socket(world, timeout);
    case Beside::kNccl:
      return beside_nccl(world);
    default:
      return std::nullopt;
  }
}

void tell_gpu(const CudaDevice& device, RankFacts& facts) {
  facts.device_name = device.name();
  facts.bus = device.bus();
  facts.memory = device.has_unified_memory() ? RankMemory::kUnified : RankMemory::kGpu;
  // Of unified memory the host knows better what is available: it can drop its caches.
  if (facts.memory == RankMemory::kGpu)
    facts.gpu_memory_available = static_cast<std::int64_t>(device.memory_available());
}

}  // namespace

RankLane::RankLane(World& world, const RankRequest& request, Seconds timeout)
    : beside_(make_beside(world, request.beside, timeout)),
      lane_{.comm = world.comm(), .control = world.control()},
      facts_(facts_of_this_process(world.place().local_rank)) {
  if (carrier_of(request) != Carrier::kNccl) return;
  device_.emplace(world.device());
  stream_.emplace(*device_);
  lane_.stream = stream_->stream();
  lane_.device = &*device_;
  tell_gpu(*device_, facts_);
}

}  // namespace yoke
