// Any processor: loops over sixteen numbers, which the compiler turns into what the machine's baseline has.
#include <cmath>

#include "yoke/ops/cpu/kernels.h"
#include "yoke/ops/cpu/table.h"
#include "yoke/tensor/dtype.h"

namespace yoke::ops::cpu {
namespace {

struct Plain {
  struct F {
    float x[16];
  };
  struct I {
    std::int32_t x[16];
  };
  static constexpr int kRowsInt8 = 4;
  static constexpr int kRowsF32 = 2;
  static constexpr int kSumsAtOnce = 2;

  template <class Result, class Function>
  static Result each(const Function& function) {
    Result y;
    for (int i = 0; i < 16; ++i) y.x[i] = function(i);
    return y;
  }
  static std::uint32_t word(std::int32_t x) { return static_cast<std::uint32_t>(x); }
  static std::int32_t wrapped(std::uint32_t x) { return static_cast<std::int32_t>(x); }

  static F set(float x) {
    return each<F>([&](int) { return x; });
  }
  static F load(const float* from) {
    return each<F>([&](int i) { return from[i]; });
  }
  static void store(float* to, const F& x) { std::memcpy(to, x.x, sizeof x.x); }
  static F add(const F& a, const F& b) {
    return each<F>([&](int i) { return a.x[i] + b.x[i]; });
  }
  static F sub(const F& a, const F& b) {
    return each<F>([&](int i) { return a.x[i] - b.x[i]; });
  }
  static F mul(const F& a, const F& b) {
    return each<F>([&](int i) { return a.x[i] * b.x[i]; });
  }
  static F div(const F& a, const F& b) {
    return each<F>([&](int i) { return a.x[i] / b.x[i]; });
  }
  static F min(const F& a, const F& b) {
    return each<F>([&](int i) { return a.x[i] < b.x[i] ? a.x[i] : b.x[i]; });
  }
  static F max(const F& a, const F& b) {
    return each<F>([&](int i) { return a.x[i] > b.x[i] ? a.x[i] : b.x[i]; });
  }
  static F fma(const F& a, const F& b, const F& c) {
    return each<F>([&](int i) { return std::fma(a.x[i], b.x[i], c.x[i]); });
  }

  static I iset(std::int32_t x) {
    return each<I>([&](int) { return x; });
  }
  static I iload(const void* from) {
    I y;
    std::memcpy(y.x, from, sizeof y.x);
    return y;
  }
  static I iand(const I& a, const I& b) {
    return each<I>([&](int i) { return a.x[i] & b.x[i]; });
  }
  static I iadd(const I& a, const I& b) {
    return each<I>([&](int i) { return wrapped(word(a.x[i]) + word(b.x[i])); });
  }
  static I isub(const I& a, const I& b) {
    return each<I>([&](int i) { return wrapped(word(a.x[i]) - word(b.x[i])); });
  }
  static I imul(const I& a, const I& b) {
    return each<I>([&](int i) { return wrapped(word(a.x[i]) * word(b.x[i])); });
  }
  static I imax(const I& a, const I& b) {
    return each<I>([&](int i) { return a.x[i] > b.x[i] ? a.x[i] : b.x[i]; });
  }
  static I add_words(const I& a, const I& b) {
    std::uint64_t x[8], y[8];
    std::memcpy(x, a.x, sizeof x);
    std::memcpy(y, b.x, sizeof y);
    for (int i = 0; i < 8; ++i) x[i] += y[i];
    return iload(x);
  }
  template <int kBits>
  static I shift_right(const I& a) {
    return each<I>([&](int i) { return wrapped(word(a.x[i]) >> kBits); });
  }
  template <int kBits>
  static I shift_left(const I& a) {
    return each<I>([&](int i) { return wrapped(word(a.x[i]) << kBits); });
  }
  static float max_of(const F& a) {
    float most = a.x[0];
    for (const float x : a.x) most = x > most ? x : most;
    return most;
  }
  static std::uint32_t not_below(const F& a, const F& least) {
    std::uint32_t found = 0;
    for (int i = 0; i < 16; ++i) found |= static_cast<std::uint32_t>(!(a.x[i] < least.x[i])) << i;
    return found;
  }
  static std::int32_t imax_of(const I& a) {
    std::int32_t most = 0;
    for (const std::int32_t x : a.x) most = x > most ? x : most;
    return most;
  }
  static std::int32_t isum_of(const I& a) {
    std::int32_t sum = 0;
    for (const std::int32_t x : a.x) sum += x;
    return sum;
  }
  static I dot(const I& sum, const I& a, const I& b) {
    std::uint8_t codes[64];
    std::int8_t bytes[64];
    std::memcpy(codes, a.x, sizeof codes);
    std::memcpy(bytes, b.x, sizeof bytes);
    return each<I>([&](int i) {
      std::int32_t y = sum.x[i];
      for (int j = 4 * i; j < 4 * i + 4; ++j) y += codes[j] * bytes[j];
      return y;
    });
  }
  static constexpr std::int32_t kByteOffset = 0;
  static I dot_bytes(const I& sum, const I& a, const I& b) { return dot(sum, a, b); }

  static F to_float(const I& a) {
    return each<F>([&](int i) { return static_cast<float>(a.x[i]); });
  }
  static I nearest(const F& a) {
    return each<I>(
        [&](int i) { return a.x[i] > -2e9F && a.x[i] < 2e9F ? static_cast<std::int32_t>(std::nearbyint(a.x[i])) : 0; });
  }
  static F bits(const I& a) {
    F y;
    std::memcpy(y.x, a.x, sizeof y.x);
    return y;
  }
  static I load_bytes(const void* from) {
    return each<I>([&](int i) { return static_cast<const std::uint8_t*>(from)[i]; });
  }
  static void store_bytes(std::int8_t* to, const I& a) {
    for (int i = 0; i < 16; ++i) to[i] = static_cast<std::int8_t>(a.x[i]);
  }
  static std::uint16_t half(const void* from, int i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(from) + 2 * i, sizeof bits);
    return bits;
  }
  static F load_f16(const void* from) {
    return each<F>([&](int i) { return tensor::to_float(tensor::F16{half(from, i)}); });
  }
  static F load_bf16(const void* from) {
    return each<F>([&](int i) { return tensor::to_float(tensor::Bf16{half(from, i)}); });
  }
  static void store_bf16(std::uint16_t* to, const F& a) {
    for (int i = 0; i < 16; ++i) to[i] = tensor::to_bf16(a.x[i]).bits;
  }
  static F fp8(const I& code) {
    return each<F>([&](int i) { return tensor::to_float(tensor::F8E4m3{static_cast<std::uint8_t>(code.x[i])}); });
  }
  static F e2m1(const I& code) {
    return each<F>([&](int i) { return tensor::kE2m1Values[static_cast<std::size_t>(code.x[i])]; });
  }
  static constexpr std::int64_t kAhead = 4096;  // bytes
  static void prefetch(const void* at) { __builtin_prefetch(at); }

  static F sums_of(const F* a) {
    return each<F>([&](int i) {
      float sum = 0;
      for (const float x : a[i].x) sum += x;
      return sum;
    });
  }
};

constexpr Kernels kTable = table_of<Plain>("plain");

}  // namespace

const Kernels* plain_kernels() { return &kTable; }

}  // namespace yoke::ops::cpu
