#include "yoke/bench/placement.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "yoke/base/error.h"
#include "yoke/bench/check_data.h"

namespace yoke::bench {
namespace {

using K = comm::CollectiveKind;

std::unique_ptr<std::byte[]> allocate(std::size_t bytes) {
  try {
    return std::make_unique<std::byte[]>(bytes);  // cleared, so that every page is there before anything is timed
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kExhausted, fmt::format("no memory for a buffer of {} bytes", bytes), "give a smaller -e");
  }
}

std::byte* align(std::byte* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return at + ((64 - address % 64) % 64);
}

// Where the rank's data lie: in place both are parts of the receive block.
struct Ends {
  std::byte* send;
  std::byte* receive;
};

Ends ends_of(const RowPlan& plan, const Blocks& blocks, Placement placement) {
  const std::size_t element = tensor::size_of(plan.type);
  const std::size_t unalign = plan.unalign * element;
  std::byte* const block = blocks.receive + unalign;
  if (placement == Placement::kOutOfPlace || !traits_of(plan.kind).in_place) return {blocks.send + unalign, block};
  const CollectiveShape shape = plan.shape();
  return {block + shape.send_in_place * element, block + shape.receive_in_place * element};
}

int previous(const RowPlan& plan) { return (plan.rank + plan.ranks - 1) % plan.ranks; }

bool gives(const RowPlan& plan) {
  return (plan.kind != K::kBroadcast && plan.kind != K::kScatter) || plan.rank == plan.root;
}
bool receives(const RowPlan& plan) {
  return (plan.kind != K::kReduce && plan.kind != K::kGather) || plan.rank == plan.root;
}

}  // namespace

BenchBuffers::BenchBuffers(const BenchContext& context, std::size_t bytes, std::size_t unalign_bytes_max)
    : context_(context),
      size_(bytes + unalign_bytes_max),
      send_(allocate(size_ + 64)),
      receive_(allocate(size_ + 64)),
      host_{align(send_.get()), align(receive_.get())},
      measured_(host_) {
  if (!context.device) return;
  device_send_.emplace(*context.device, size_);
  device_receive_.emplace(*context.device, size_);
  measured_ = {static_cast<std::byte*>(device_send_->data()), static_cast<std::byte*>(device_receive_->data())};
}

void BenchBuffers::upload() const { copy(measured_, host_); }
void BenchBuffers::download() const { copy(host_, measured_); }

void BenchBuffers::copy(const Blocks& to, const Blocks& from) const {
  if (!context_.device) return;
  const cuda::CudaStream stream(*context_.device);
  stream.copy(to.send, from.send, size_);
  stream.copy(to.receive, from.receive, size_);
  stream.wait(Deadline::after({60}));
}

comm::Collective make_operation(const RowPlan& plan, const BenchBuffers& buffers, Placement placement) {
  const Ends ends = ends_of(plan, buffers.measured(), placement);
  comm::Collective operation{.kind = plan.kind,
                             .send = ends.send,
                             .receive = ends.receive,
                             .count = plan.shape().count,
                             .type = plan.type,
                             .op = plan.op,
                             .root = plan.root < 0 ? 0 : plan.root};
  if (plan.kind == K::kSendReceive) {
    operation.root = (plan.rank + 1) % plan.ranks;
    operation.source = previous(plan);
  }
  return operation;
}

void fill_data(const RowPlan& plan, const BenchBuffers& buffers, Placement placement, std::uint32_t round) {
  const Ends ends = ends_of(plan, buffers.host(), placement);
  const CollectiveShape shape = plan.shape();
  const CheckData data(plan.type, plan.op, plan.ranks, round);
  const std::size_t element = tensor::size_of(plan.type);
  std::memset(buffers.host().receive + plan.unalign * element, 0, row_bytes(shape, element));
  if (gives(plan) && traits_of(plan.kind).reduces) {
    data.fill_input(ends.send, 0, shape.send, plan.rank);
  } else if (gives(plan)) {
    data.fill_moved(ends.send, 0, shape.send, plan.rank);
  }
  buffers.upload();
}

std::int64_t count_wrong(const RowPlan& plan, const BenchBuffers& buffers, Placement placement, std::uint32_t round) {
  if (!receives(plan)) return 0;
  buffers.download();
  const CollectiveShape shape = plan.shape();
  const CheckData data(plan.type, plan.op, plan.ranks, round);
  const std::byte* const got = ends_of(plan, buffers.host(), placement).receive;
  const std::size_t own = shape.count * static_cast<std::size_t>(plan.rank);
  switch (plan.kind) {
    case K::kAllReduce:
    case K::kReduce:
      return data.count_wrong_result(got, 0, shape.receive);
    case K::kReduceScatter:
      return data.count_wrong_result(got, own, shape.receive);
    case K::kBroadcast:
      return data.count_wrong_moved(got, 0, shape.receive, plan.root);
    case K::kScatter:
      return data.count_wrong_moved(got, own, shape.receive, plan.root);
    case K::kSendReceive:
      return data.count_wrong_moved(got, 0, shape.receive, previous(plan));
    default:
      break;
  }
  std::int64_t wrong = 0;  // one part from each rank
  const std::size_t part_bytes = shape.count * tensor::size_of(plan.type);
  for (int source = 0; source < plan.ranks; ++source) {
    const std::byte* const part = got + static_cast<std::size_t>(source) * part_bytes;
    wrong += data.count_wrong_moved(part, plan.kind == K::kAllToAll ? own : 0, shape.count, source);
  }
  return wrong;
}

}  // namespace yoke::bench
