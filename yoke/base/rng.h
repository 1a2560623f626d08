// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a counter-based generator.
// The value at (seed, position) is a pure function, so a resumed request, another batch or another rank draws the same
// numbers without sharing any state.
//
//   philox(seed, position)          // four independent 32-bit words
//   Random random(seed); random.uniform(); random.below(10);   // a stream, for tests and shuffles
#pragma once
#include <array>
#include <cstdint>

namespace yoke {

using PhiloxBlock = std::array<std::uint32_t, 4>;

PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

inline PhiloxBlock philox(std::uint64_t seed, std::uint64_t position, std::uint64_t stream = 0) {
  return philox4x32({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// In [0, 1) with all 24 bits that a float holds; the same on every machine.
constexpr float to_unit_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }
// In [0, 1) with 53 bits.
constexpr double to_unit_double(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((static_cast<std::uint64_t>(high) << 21) ^ (low >> 11)) * 0x1p-53;
}

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
