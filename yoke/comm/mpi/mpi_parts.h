// Operations of more elements than an MPI call counts, as several calls.
#pragma once
#include <algorithm>
#include <cstddef>

#include "yoke/comm/communicator.h"

namespace yoke::comm::mpi {

// Whether buffers hold a part for each rank: such an operation is of `count` elements for each rank, and cannot be cut
// into runs of consecutive elements.
constexpr bool has_part_of_each_rank(CollectiveKind kind) {
  using K = CollectiveKind;
  return kind == K::kAllGather || kind == K::kReduceScatter || kind == K::kGather || kind == K::kScatter ||
         kind == K::kAllToAll;
}

// Calls `carry_out` with the operation, or where it has more than `most` elements with one part of it after the other.
template <class CarryOut>
void for_each_part(const Collective& operation, std::size_t most, CarryOut carry_out) {
  if (operation.count <= most) return carry_out(operation);
  Collective part = operation;
  for (std::size_t done = 0; done < operation.count; done += part.count) {
    const std::size_t offset = done * tensor::size_of(operation.type);
    // Who neither sends nor receives may have given no buffer.
    if (operation.send) part.send = static_cast<const std::byte*>(operation.send) + offset;
    if (operation.receive) part.receive = static_cast<std::byte*>(operation.receive) + offset;
    part.count = std::min(most, operation.count - done);
    carry_out(part);
  }
}

}  // namespace yoke::comm::mpi
