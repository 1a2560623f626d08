// Norms, with the bits of the reference.
#include <cmath>

#include "yoke/ops/cpu/backend.h"

namespace yoke::ops::cpu {

void CpuBackend::norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) {
  const std::int64_t width = residual.extent(1);
  ref::expect(y, residual.shape);
  ref::expect(weight, {width});
  if (x != nullptr) ref::expect(*x, residual.shape);
  pool_.parallel_for(residual.extent(0), 16, [&](tensor::Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      float* const sum = ref::floats(residual) + t * width;
      const float squares = kernels_.add_and_square(x == nullptr ? nullptr : ref::floats(*x) + t * width, width, sum);
      const float factor = 1 / std::sqrt(squares / static_cast<float>(width) + epsilon);
      kernels_.scale_row(sum, ref::floats(weight), factor, width, ref::floats(y) + t * width);
    }
  });
}

}  // namespace yoke::ops::cpu
