// What looks at one row of activations at a time, over the vectors of one instruction set (see linear_loops.h).
#pragma once
#include <cstring>

#include "yoke/ops/cpu/kernels.h"

namespace yoke::ops::cpu {
namespace {

constexpr std::int32_t kInfinityBits = 0x7f800000;

// One scale for each block, absmax / 127, and the nearest integers, of two equally near ones the even one. A block with
// an infinity or a NaN gets the scale NaN: so do all outputs.
template <class Lanes>
void quantize(const float* x, std::int64_t block, std::int64_t blocks, std::int8_t* to, float* scales,
              std::int32_t* sums) {
  using I = typename Lanes::I;
  for (std::int64_t b = 0; b < blocks; ++b, x += block, to += block) {
    I most = Lanes::iset(0);  // of the bits without the sign, which order as the numbers do
    for (std::int64_t i = 0; i < block; i += kPanelRows) {
      most = Lanes::imax(most, Lanes::iand(Lanes::iload(x + i), Lanes::iset(0x7fffffff)));
    }
    const std::int32_t bits = Lanes::imax_of(most);
    float absmax = 0;
    std::memcpy(&absmax, &bits, sizeof absmax);
    const bool is_number = bits < kInfinityBits;
    // Below this the inverse would be infinite.
    const float inverse = is_number && absmax > 1e-36F ? 127 / absmax : 0;
    scales[b] = is_number ? (inverse == 0 ? 0 : absmax / 127) : __builtin_nanf("");
    I sum = Lanes::iset(0);
    for (std::int64_t i = 0; i < block; i += kPanelRows) {
      const I codes = is_number ? Lanes::nearest(Lanes::mul(Lanes::load(x + i), Lanes::set(inverse))) : Lanes::iset(0);
      Lanes::store_bytes(to + i, codes);
      sum = Lanes::iadd(sum, codes);
    }
    sums[b] = Lanes::isum_of(sum);
  }
}

template <class Lanes>
void to_bf16(const float* x, std::int64_t count, std::uint16_t* to) {
  for (std::int64_t i = 0; i < count; i += kPanelRows) Lanes::store_bf16(to + i, Lanes::load(x + i));
}

// exp(x), about one unit in the last place (the polynomial of Cephes' expf); x is held within what f32 can say.
template <class Lanes>
typename Lanes::F exponential(typename Lanes::F x) {
  using F = typename Lanes::F;
  x = Lanes::max(Lanes::set(-87), Lanes::min(Lanes::set(88), x));  // in this order a NaN stays one
  const typename Lanes::I power = Lanes::nearest(Lanes::mul(x, Lanes::set(1.44269504F)));
  const F n = Lanes::to_float(power);
  F r = Lanes::fma(n, Lanes::set(-0.693359375F), x);
  r = Lanes::fma(n, Lanes::set(2.12194440e-4F), r);
  F p = Lanes::set(1.9875691500e-4F);
  p = Lanes::fma(p, r, Lanes::set(1.3981999507e-3F));
  p = Lanes::fma(p, r, Lanes::set(8.3334519073e-3F));
  p = Lanes::fma(p, r, Lanes::set(4.1665795894e-2F));
  p = Lanes::fma(p, r, Lanes::set(1.6666665459e-1F));
  p = Lanes::fma(p, r, Lanes::set(5.0000001201e-1F));
  const F y = Lanes::add(Lanes::fma(p, Lanes::mul(r, r), r), Lanes::set(1));
  return Lanes::mul(y, Lanes::bits(Lanes::template shift_left<23>(Lanes::iadd(power, Lanes::iset(127)))));
}

template <class Lanes>
void swiglu(const float* gate, const float* up, std::int64_t count, float* y) {
  using F = typename Lanes::F;
  for (std::int64_t i = 0; i < count; i += kPanelRows) {
    const F g = Lanes::load(gate + i);
    const F e = exponential<Lanes>(Lanes::sub(Lanes::set(0), g));
    Lanes::store(y + i, Lanes::mul(Lanes::div(g, Lanes::add(Lanes::set(1), e)), Lanes::load(up + i)));
  }
}

// Adds a row to the residual, if there is one, and gives the sum of its squares: sixteen running sums, then those from
// first to last, as the reference has it (ref/dot.h).
template <class Lanes>
float add_and_square(const float* x, std::int64_t width, float* residual) {
  using F = typename Lanes::F;
  F sums = Lanes::set(0);
  const auto take = [&](const float* more, float* at) {
    F value = Lanes::load(at);
    if (more != nullptr) {
      value = Lanes::add(value, Lanes::load(more));
      Lanes::store(at, value);
    }
    sums = Lanes::add(sums, Lanes::mul(value, value));
  };
  std::int64_t i = 0;
  for (; i + kPanelRows <= width; i += kPanelRows) take(x == nullptr ? nullptr : x + i, residual + i);
  if (i < width) {
    const std::size_t bytes = static_cast<std::size_t>(width - i) * sizeof(float);
    alignas(64) float more[kPanelRows] = {}, rest[kPanelRows] = {};
    std::memcpy(rest, residual + i, bytes);
    if (x != nullptr) std::memcpy(more, x + i, bytes);
    take(x == nullptr ? nullptr : more, rest);
    std::memcpy(residual + i, rest, bytes);
  }
  alignas(64) float lanes[kPanelRows];
  Lanes::store(lanes, sums);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

// y = x * factor * weight.
template <class Lanes>
void scale_row(const float* x, const float* weight, float factor, std::int64_t width, float* y) {
  std::int64_t i = 0;
  for (; i + kPanelRows <= width; i += kPanelRows) {
    Lanes::store(y + i, Lanes::mul(Lanes::mul(Lanes::load(x + i), Lanes::set(factor)), Lanes::load(weight + i)));
  }
  for (; i < width; ++i) y[i] = x[i] * factor * weight[i];
}

// Loads and prefetches as the products do, so that it is a ceiling for them.
template <class Lanes, bool kFetches>
std::uint64_t read_all(const void* from, std::size_t bytes) {
  using I = typename Lanes::I;
  const auto* at = static_cast<const std::byte*>(from);
  I sum[8];
  for (I& one : sum) one = Lanes::iset(0);
  for (std::size_t i = 0; i < bytes; i += 512, at += 512) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      if constexpr (kFetches) Lanes::prefetch(at + Lanes::kAhead + j * 64);
      sum[j] = Lanes::add_words(sum[j], Lanes::iload(at + j * 64));
    }
  }
  std::uint64_t total = 0;
  for (const I& one : sum) {
    std::uint64_t words[8];
    std::memcpy(words, &one, sizeof words);
    for (const std::uint64_t word : words) total += word;
  }
  return total;
}

}  // namespace
}  // namespace yoke::ops::cpu
