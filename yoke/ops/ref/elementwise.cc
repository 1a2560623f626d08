// What looks at one row, or at one element, at a time.
#include <cmath>

#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/rows.h"

namespace yoke::ops::ref {

void RefBackend::norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) {
  const Sight sight(*this);
  const std::int64_t width = residual.extent(1);
  expect(y, residual.shape);
  expect(weight, {width});
  if (x != nullptr) expect(*x, residual.shape);
  pool_.parallel_for(residual.extent(0), 16, [&](tensor::Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      float* const sum = floats(residual) + t * width;
      if (x != nullptr) add_row(floats(*x) + t * width, width, sum);
      norm_row(sum, floats(weight), epsilon, width, floats(y) + t * width);
    }
  });
}

void RefBackend::add(const Slab& x, const Slab& residual) {
  const Sight sight(*this);
  expect(x, residual.shape);
  const std::int64_t width = residual.extent(1);
  pool_.parallel_for(residual.extent(0), 16, [&](tensor::Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      add_row(floats(x) + t * width, width, floats(residual) + t * width);
    }
  });
}

}  // namespace yoke::ops::ref
