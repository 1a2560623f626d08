// Slabs as kernels take them: addresses of the device, which the processor must not read.
#pragma once
#include "yoke/ops/slab.h"

namespace yoke::ops::cuda {

inline float* floats(const Slab& slab) {
  YOKE_CHECK(slab.type == tensor::DType::kF32, "{}", to_string(slab.type));
  return reinterpret_cast<float*>(slab.address);
}
inline int* ints(const Slab& slab) {
  YOKE_CHECK(slab.type == tensor::DType::kI32, "{}", to_string(slab.type));
  return reinterpret_cast<int*>(slab.address);
}
inline void expect(const Slab& slab, const tensor::Shape& shape) {
  YOKE_CHECK(slab.shape == shape, "{} where {} is needed", to_string(slab.shape), to_string(shape));
}
inline unsigned count_of(std::int64_t value) { return static_cast<unsigned>(value); }

}  // namespace yoke::ops::cuda
