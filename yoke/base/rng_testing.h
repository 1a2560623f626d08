// A stream of random numbers for tests: what it gives follows from its seed.
//
//   Random random(seed);
//   random.uniform(); random.below(10);
#pragma once
#include "yoke/base/rng.h"

namespace yoke {

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint32_t word();
  double uniform() {
    const std::uint32_t high = word();
    return to_unit_double(high, word());
  }
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), without modulo bias
  double normal();                           // mean 0, deviation 1 (Box-Muller, one of the pair)

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
  unsigned used_ = 4;
  PhiloxBlock block_{};
};

}  // namespace yoke
