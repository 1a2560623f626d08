// Quantities that cannot be mixed: Bytes, BitsPerSecond, BytesPerSecond, Seconds. 200 Gb/s and 23.7 GB/s differ by a
// factor of eight that every network tool gets wrong once; here adding them does not compile.
//
//   Seconds t = 4_GiB / to_bytes_per_second(200_Gbps);
//   parse_bits_per_second("200Gb/s"), to_string(23.7_GBps) == "23.7 GB/s", exact(128_GiB) == "128GiB"
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "yoke/base/result.h"

namespace yoke {

template <class Tag, class Representation>
struct Quantity {
  Representation value{};

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
  // A factor or divisor must be of the representation's own kind: Bytes times 1.5 would silently drop bytes.
  friend constexpr Quantity operator*(Quantity a, Representation factor) { return {a.value * factor}; }
  friend constexpr Quantity operator*(Representation factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, Representation divisor) { return {a.value / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using BitsPerSecond = Quantity<struct BitsPerSecondTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using Seconds = Quantity<struct SecondsTag, double>;

constexpr BytesPerSecond to_bytes_per_second(BitsPerSecond rate) { return {rate.value / 8}; }
constexpr BitsPerSecond to_bits_per_second(BytesPerSecond rate) { return {rate.value * 8}; }
constexpr Seconds operator/(Bytes size, BytesPerSecond rate) { return {static_cast<double>(size.value) / rate.value}; }
constexpr BytesPerSecond operator/(Bytes size, Seconds time) { return {static_cast<double>(size.value) / time.value}; }

// For people: three or four digits and the unit that suits ("121.6 GiB", "23.7 GB/s", "31.7 us").
std::string to_string(Bytes size);
std::string to_string(BitsPerSecond rate);
std::string to_string(BytesPerSecond rate);
std::string to_string(Seconds time);

// For files: the shortest text that parses back to the very same value ("128GiB", "2Gb/s").
std::string exact(Bytes size);
std::string exact(BitsPerSecond rate);
std::string exact(BytesPerSecond rate);
std::string exact(Seconds time);

// A number and a unit, with or without a space; never a bare number, never a negative one. Sizes: B, kB…PB (powers of
// 1000), KiB…PiB (of 1024). Rates: b/s, kb/s, Mb/s, Gb/s, Tb/s (also bit/s, bps), and B/s likewise. Times: ns, us, ms,
// s, min, h. The error's hint says what was probably meant.
Result<Bytes> parse_bytes(std::string_view text);
Result<BitsPerSecond> parse_bits_per_second(std::string_view text);
Result<BytesPerSecond> parse_bytes_per_second(std::string_view text);
Result<Seconds> parse_seconds(std::string_view text);

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 30}; }
constexpr BitsPerSecond operator""_Gbps(long double n) { return {static_cast<double>(n) * 1e9}; }
constexpr BitsPerSecond operator""_Gbps(unsigned long long n) { return {static_cast<double>(n) * 1e9}; }
constexpr BytesPerSecond operator""_GBps(long double n) { return {static_cast<double>(n) * 1e9}; }
constexpr BytesPerSecond operator""_GBps(unsigned long long n) { return {static_cast<double>(n) * 1e9}; }
constexpr Seconds operator""_s(long double n) { return {static_cast<double>(n)}; }
constexpr Seconds operator""_s(unsigned long long n) { return {static_cast<double>(n)}; }
constexpr Seconds operator""_ms(unsigned long long n) { return {static_cast<double>(n) / 1e3}; }
constexpr Seconds operator""_us(unsigned long long n) { return {static_cast<double>(n) / 1e6}; }
}  // namespace literals

}  // namespace yoke
