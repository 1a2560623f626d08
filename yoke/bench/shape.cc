#include "yoke/bench/shape.h"

#include <algorithm>
#include <array>

#include "yoke/base/check.h"

namespace yoke::bench {
namespace {

using K = comm::CollectiveKind;

constexpr std::array kTraits = {
    CollectiveTraits{.kind = K::kAllReduce, .program = "all_reduce_perf", .reduces = true, .prints_op = true},
    CollectiveTraits{.kind = K::kAllGather, .program = "all_gather_perf"},
    CollectiveTraits{.kind = K::kReduceScatter, .program = "reduce_scatter_perf", .reduces = true, .prints_op = true},
    CollectiveTraits{.kind = K::kBroadcast, .program = "broadcast_perf", .has_root = true},
    CollectiveTraits{
        .kind = K::kReduce, .program = "reduce_perf", .reduces = true, .has_root = true, .prints_op = true},
    CollectiveTraits{.kind = K::kGather, .program = "gather_perf", .has_root = true},
    CollectiveTraits{.kind = K::kScatter, .program = "scatter_perf", .has_root = true},
    CollectiveTraits{.kind = K::kAllToAll, .program = "alltoall_perf", .in_place = false},
    CollectiveTraits{.kind = K::kSendReceive, .program = "sendrecv_perf", .in_place = false, .prints_op = true},
};

}  // namespace

const CollectiveTraits& traits_of(comm::CollectiveKind kind) {
  const auto* found = std::find_if(kTraits.begin(), kTraits.end(), [&](const auto& row) { return row.kind == kind; });
  YOKE_CHECK(found != kTraits.end(), "{} is not measured", comm::to_string(kind));
  return *found;
}

CollectiveShape shape_of(comm::CollectiveKind kind, std::size_t bytes, std::size_t element_size, int rank, int ranks) {
  const std::size_t all = bytes / element_size;
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t part = all / n & ~(16 / element_size - 1);
  const std::size_t own = part * static_cast<std::size_t>(rank);
  switch (kind) {
    case K::kAllGather:
    case K::kGather:
      return {.count = part, .send = part, .receive = part * n, .send_in_place = own};
    case K::kReduceScatter:
    case K::kScatter:
      return {.count = part, .send = part * n, .receive = part, .receive_in_place = own};
    case K::kAllToAll:
      return {.count = part, .send = part * n, .receive = part * n};
    default:
      return {.count = all, .send = all, .receive = all};
  }
}

std::size_t row_bytes(const CollectiveShape& shape, std::size_t element_size) {
  return std::max(shape.send, shape.receive) * element_size;
}

Bandwidth bandwidth_of(comm::CollectiveKind kind, std::size_t count, std::size_t element_size, int ranks,
                       double seconds) {
  if (seconds <= 0) return {};
  const double n = ranks;
  const double rate = static_cast<double>(count * element_size) / 1e9 / seconds;
  switch (kind) {
    case K::kAllReduce:
      return {rate, rate * 2 * (n - 1) / n};
    case K::kAllGather:
    case K::kReduceScatter:
    case K::kGather:
    case K::kScatter:
    case K::kAllToAll:
      return {rate * n, rate * n * (n - 1) / n};
    default:
      return {rate, rate};
  }
}

}  // namespace yoke::bench
