#include "yoke/base/rng_testing.h"

#include <cmath>
#include <numbers>

#include "yoke/base/check.h"

namespace yoke {

std::uint32_t Random::word() {
  if (used_ == block_.size()) {
    block_ = philox(seed_, position_++, stream_);
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t Random::below(std::uint64_t bound) {
  YOKE_CHECK_GT(bound, 0U);
  // Values from the incomplete last multiple of `bound` are drawn again.
  const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % bound + 1) % bound;
  for (;;) {
    const std::uint64_t high = word();
    const std::uint64_t value = high << 32 | word();
    if (value <= limit) return value % bound;
  }
}

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace yoke
