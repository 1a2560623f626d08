// A typed place in the memory of a backend. The processor may not be able to read it, so there is no pointer to its
// elements: upload() and download() of Backend are the only ways in and out. Trivially copyable; views allocate nothing
// and own nothing. Rows are dense.
#pragma once
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/tensor/dtype.h"
#include "yoke/tensor/shape.h"

namespace yoke::ops {

struct Slab {
  std::uint64_t address = 0;  // the backend's own; collectives on the backend's stream take it too
  tensor::Shape shape{0};
  tensor::DType type = tensor::DType::kF32;

  std::int64_t extent(std::size_t axis) const { return shape[axis]; }
  std::int64_t count() const { return shape.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * tensor::size_of(type); }

  // Some of the outermost axis.
  Slab rows(tensor::Range range) const {
    YOKE_CHECK(shape.rank() >= 1 && range.begin >= 0 && range.begin <= range.end && range.end <= shape[0], "{} of {}",
               to_string(range), to_string(shape));
    Slab part{address, shape.with(0, range.size()), type};
    if (shape[0] > 0)
      part.address += static_cast<std::uint64_t>(range.begin) * (bytes() / static_cast<std::size_t>(shape[0]));
    return part;
  }
  Slab reshaped(const tensor::Shape& other) const {
    YOKE_CHECK(other.count() == count(), "{} as {}", to_string(shape), to_string(other));
    return {address, other, type};
  }
  // The same bytes as another type of the same size.
  Slab as(tensor::DType other) const {
    YOKE_CHECK_EQ(tensor::size_of(other), tensor::size_of(type));
    return {address, shape, other};
  }
};

}  // namespace yoke::ops
