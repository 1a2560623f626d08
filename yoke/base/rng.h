// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a counter-based generator.
// The value at (seed, position) is a pure function, so a resumed request, another batch or another rank draws the same
// numbers without sharing any state.
//
//   philox(seed, position)          // four independent 32-bit words
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

}  // namespace yoke
