// The buffers of one rank for one row, the operation on them in or out of place, its data, and what is wrong with it
// afterwards. Owned by the rank's thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "yoke/bench/shape.h"
#include "yoke/comm/communicator.h"

namespace yoke {

enum class Placement { kOutOfPlace, kInPlace };

// Two blocks of memory, touched before anything is timed.
class BenchBuffers {
 public:
  BenchBuffers(std::size_t bytes, std::size_t unalign_bytes_most);
  std::byte* send(std::size_t unalign_bytes) const { return send_begin_ + unalign_bytes; }
  std::byte* receive(std::size_t unalign_bytes) const { return receive_begin_ + unalign_bytes; }

 private:
  std::unique_ptr<std::byte[]> send_;
  std::unique_ptr<std::byte[]> receive_;
  std::byte* send_begin_;  // at a multiple of 64
  std::byte* receive_begin_;
};

// One row on one rank.
struct RowPlan {
  CollectiveKind kind;
  DType type;
  ReduceOp op;
  int root;  // -1 where the kind has none
  int rank;
  int ranks;
  std::size_t bytes;    // as asked
  std::size_t unalign;  // in elements

  CollectiveShape shape() const { return shape_of(kind, bytes, size_of(type), rank, ranks); }
};

Collective make_operation(const RowPlan& plan, const BenchBuffers& buffers, Placement placement);
// Writes what this rank gives, and clears what it receives.
void fill_data(const RowPlan& plan, const BenchBuffers& buffers, Placement placement, std::uint32_t round);
// Elements of this rank that are not what they must be after the operation.
std::int64_t count_wrong(const RowPlan& plan, const BenchBuffers& buffers, Placement placement, std::uint32_t round);

}  // namespace yoke
