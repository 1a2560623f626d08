// The small formulas that operations are made of, on one row.
#pragma once
#include <cmath>
#include <cstdint>

#include "yoke/ops/ref/dot.h"

namespace yoke::ops::ref {

inline void add_row(const float* x, std::int64_t width, float* y) {
  for (std::int64_t c = 0; c < width; ++c) y[c] += x[c];
}

// RMSNorm (Zhang and Sennrich 2019); y may be x.
inline void norm_row(const float* x, const float* weight, float epsilon, std::int64_t width, float* y) {
  const float mean = dot(x, x, width) / static_cast<float>(width);
  const float factor = 1 / std::sqrt(mean + epsilon);
  for (std::int64_t c = 0; c < width; ++c) y[c] = x[c] * factor * weight[c];
}

inline float silu(float x) { return x / (1 + std::exp(-x)); }

}  // namespace yoke::ops::ref
