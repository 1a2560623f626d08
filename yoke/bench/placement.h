// The buffers of one rank for one row, the operation on them in or out of place, its data, and what is wrong with it
// afterwards. Owned by the rank's thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "yoke/bench/bench_context.h"
#include "yoke/bench/shape.h"
#include "yoke/comm/communicator.h"
#include "yoke/cuda/driver.h"

namespace yoke::bench {

enum class Placement { kOutOfPlace, kInPlace };

struct Blocks {
  std::byte* send;  // at a multiple of 64
  std::byte* receive;
};

// Two blocks of memory, touched before anything is timed; for a GPU two more on the device.
class BenchBuffers {
 public:
  BenchBuffers(const BenchContext& context, std::size_t bytes, std::size_t unalign_bytes_max);
  const Blocks& host() const { return host_; }
  const Blocks& measured() const { return measured_; }  // the same for a processor
  void upload() const;
  void download() const;

 private:
  void copy(const Blocks& to, const Blocks& from) const;

  BenchContext context_;
  std::size_t size_;
  std::unique_ptr<std::byte[]> send_;
  std::unique_ptr<std::byte[]> receive_;
  std::optional<cuda::CudaMemory> device_send_, device_receive_;
  Blocks host_, measured_;
};

// One row on one rank.
struct RowPlan {
  comm::CollectiveKind kind;
  tensor::DType type;
  comm::ReduceOp op;
  int root;  // -1 where the kind has none
  int rank;
  int ranks;
  std::size_t bytes;    // as asked
  std::size_t unalign;  // in elements

  CollectiveShape shape() const { return shape_of(kind, bytes, tensor::size_of(type), rank, ranks); }
};

comm::Collective make_operation(const RowPlan& plan, const BenchBuffers& buffers, Placement placement);
// Writes what this rank gives, and clears what it receives.
void fill_data(const RowPlan& plan, const BenchBuffers& buffers, Placement placement, std::uint32_t round);
// Elements of this rank that are not what they must be after the operation.
std::int64_t count_wrong(const RowPlan& plan, const BenchBuffers& buffers, Placement placement, std::uint32_t round);

}  // namespace yoke::bench
