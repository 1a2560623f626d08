#include "yoke/base/rng.h"

namespace yoke {

PhiloxBlock philox4x32(PhiloxBlock c, std::array<std::uint32_t, 2> key) {
  // Multipliers and Weyl increments as in the paper, table 2 and section 4.
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c[0];
    const std::uint64_t product1 = kMultiplier1 * c[2];
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

}  // namespace yoke
