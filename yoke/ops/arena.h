// The activations of a step: one block, given out from its beginning. The same calls in the same order get the same
// addresses in every step, and none of them allocates.
#pragma once
#include <algorithm>
#include <memory>

#include "yoke/ops/backend.h"

namespace yoke::ops {

class StepArena {
 public:
  static constexpr std::size_t kAlignment = 256;  // as CUDA's allocations
  static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  // What take() of such a shape uses up.
  static std::size_t bytes_of(const tensor::Shape& shape, tensor::DType type) {
    return rounded(static_cast<std::size_t>(shape.count()) * tensor::size_of(type));
  }

  StepArena(Backend& ops, std::size_t bytes)
      : memory_(ops.allocate({static_cast<std::int64_t>(rounded(bytes))}, tensor::DType::kU8)) {}

  Slab take(const tensor::Shape& shape, tensor::DType type) {
    const std::size_t bytes = bytes_of(shape, type);
    YOKE_CHECK(used_ + bytes <= memory_->slab().bytes(), "{} bytes beyond {} of {}", bytes, used_,
               memory_->slab().bytes());
    const Slab slab{memory_->slab().address + used_, shape, type};
    used_ += bytes;
    most_ = std::max(most_, used_);
    return slab;
  }
  void reset() { used_ = 0; }
  // What is taken after a mark can be given back together: the layers of a model use the same room in turns.
  using Mark = std::size_t;
  Mark mark() const { return used_; }
  void back_to(Mark mark) { used_ = mark; }
  std::size_t most() const { return most_; }  // used in any step
  std::size_t bytes() const { return memory_->slab().bytes(); }

 private:
  std::unique_ptr<SlabMemory> memory_;
  std::size_t used_ = 0;
  std::size_t most_ = 0;
};

}  // namespace yoke::ops
