// What choosing tokens takes from rows of logits, over the vectors of one instruction set (see linear_loops.h).
#pragma once
#include <cstring>

#include "yoke/ops/cpu/kernels.h"

namespace yoke::ops::cpu {
namespace {

// A NaN may be lost or kept: who needs to know asks not_below().
template <class Lanes>
void block_maxima(const float* x, std::int64_t blocks, float* to) {
  using F = typename Lanes::F;
  for (std::int64_t b = 0; b < blocks; ++b, x += kLogitBlock) {
    const F left = Lanes::max(Lanes::load(x), Lanes::load(x + kPanelRows));
    const F right = Lanes::max(Lanes::load(x + 2 * kPanelRows), Lanes::load(x + 3 * kPanelRows));
    to[b] = Lanes::max_of(Lanes::max(left, right));
  }
}

template <class Lanes>
std::uint64_t not_below(const float* x, float least) {
  std::uint64_t found = 0;
  for (std::int64_t i = 0; i < kLogitBlock; i += kPanelRows) {
    found |= static_cast<std::uint64_t>(Lanes::not_below(Lanes::load(x + i), Lanes::set(least))) << i;
  }
  return found;
}

// Vectors of the compiler's own: double precision is needed here alone, and multiplications and additions (never fused)
// give the same bits whatever they become.
constexpr std::int64_t kDoubles = 8;
using Doubles = double __attribute__((vector_size(sizeof(double) * kDoubles)));

// Adds exp(x * scale - max), kDoubles at a time, in the order of x; U of them are under way at once, since each waits
// for itself all the time. exp(v) = 2^n exp(r), with Taylor's polynomial of r up to r^12 / 12!: for |r| up to log(2) /
// 2 what is left out is below 2e-16.
template <int U>
void add_exponentials(const float* x, double scale, double max, Doubles& sum) {
  using Floats = float __attribute__((vector_size(sizeof(float) * kDoubles)));
  using Words = std::int64_t __attribute__((vector_size(sizeof(std::int64_t) * kDoubles)));
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // with zeros at its end, so that n times it is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
  constexpr double kMin = -708;                  // exp() of it is about the least number there is: as good as zero
  constexpr double kFactors[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
      1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  Doubles r[U], p[U];
  Words power[U];
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) {
    Floats some;
    std::memcpy(&some, x + u * kDoubles, sizeof some);
    Doubles v = __builtin_convertvector(some, Doubles) * scale - max;
    v = v < kMin ? Doubles{} + kMin : v;
    const Doubles rounded = v * kLog2E + kRound;
    const Doubles n = rounded - kRound;
    r[u] = v - n * kLn2High - n * kLn2Low;
    p[u] = Doubles{} + kFactors[0];
    power[u] = (__builtin_bit_cast(Words, rounded) << 52) + (std::int64_t{1023} << 52);
  }
#pragma GCC unroll 12
  for (int term = 1; term < 13; ++term) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) p[u] = p[u] * r[u] + kFactors[term];
  }
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) sum += p[u] * __builtin_bit_cast(Doubles, power[u]);
}

template <class Lanes>
double sum_of_exponentials(const float* x, std::int64_t count, double scale, double max) {
  constexpr int kAtOnce = Lanes::kSumsAtOnce >= 16 ? 4 : 1;
  Doubles sum = {};
  std::int64_t i = 0;
  for (; i + kAtOnce * kDoubles <= count; i += kAtOnce * kDoubles) add_exponentials<kAtOnce>(x + i, scale, max, sum);
  for (; i < count; i += kDoubles) {
    float some[kDoubles];
    for (std::int64_t k = 0; k < kDoubles; ++k) some[k] = i + k < count ? x[i + k] : -__builtin_inff();
    add_exponentials<1>(some, scale, max, sum);
  }
  double all = 0;
  for (int lane = 0; lane < kDoubles; ++lane) all += sum[lane];
  return all;
}

}  // namespace
}  // namespace yoke::ops::cpu
