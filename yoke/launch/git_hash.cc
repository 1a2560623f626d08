// SHA-1, which git names its files by. It proves that bytes arrived as they were sent; it is no defence against
// somebody who makes two files of one hash. Large files have SHA-256.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "yoke/base/files.h"
#include "yoke/launch/hub.h"

namespace yoke::launch {
namespace {

using State = std::array<std::uint32_t, 5>;

// FIPS 180-4, 6.1.2.
void add_block(State& h, const unsigned char* block) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t t = 0; t < 16; ++t) {
    w[t] = std::uint32_t{block[4 * t]} << 24 | std::uint32_t{block[4 * t + 1]} << 16 |
           std::uint32_t{block[4 * t + 2]} << 8 | std::uint32_t{block[4 * t + 3]};
  }
  for (std::size_t t = 16; t < 80; ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = h;
  for (std::size_t t = 0; t < 80; ++t) {
    const std::uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
    const std::uint32_t k = t < 20 ? 0x5a827999U : t < 40 ? 0x6ed9eba1U : t < 60 ? 0x8f1bbcdcU : 0xca62c1d6U;
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
}

}  // namespace

std::string sha1_hex(std::string_view data) {
  State h = {0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  std::size_t at = 0;
  for (; at + 64 <= data.size(); at += 64) add_block(h, bytes + at);
  std::array<unsigned char, 128> last{};
  const std::size_t rest = data.size() - at;
  if (rest > 0) std::memcpy(last.data(), bytes + at, rest);
  last[rest] = 0x80;
  const std::size_t size = rest < 56 ? 64 : 128;
  const std::uint64_t bits = std::uint64_t{data.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) last[size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (std::size_t i = 0; i < size; i += 64) add_block(h, last.data() + i);
  return fmt::format("{:08x}{:08x}{:08x}{:08x}{:08x}", h[0], h[1], h[2], h[3], h[4]);
}

std::string git_blob_hash(const std::filesystem::path& file) {
  const std::string content = read_file(file, Bytes{256 << 20});
  return sha1_hex(fmt::format("blob {}", content.size()) + std::string(1, '\0') + content);
}

}  // namespace yoke::launch
