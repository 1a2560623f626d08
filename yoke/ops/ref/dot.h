// The sum of products along K, in one fixed order for every caller: the batch a row is in cannot change its bits.
#pragma once
#include <array>
#include <cstdint>

namespace yoke::ops::ref {

// Sixteen running sums, then their sum from first to last. One running sum would be more obvious, but each addition
// would wait for the one before: this is several times as fast and also more exact.
inline float dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace yoke::ops::ref
