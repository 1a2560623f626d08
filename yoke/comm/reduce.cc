#include "yoke/comm/reduce.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/check.h"

// g++ at -O2 leaves loops of unknown length as they are; these are what vector instructions are for. ivdep tells it
// that `out` may be an input, but then element for element.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#define YOKE_SAME_ELEMENT_ONLY _Pragma("GCC ivdep")
#else
#define YOKE_SAME_ELEMENT_ONLY
#endif
// Everything is inlined into one function per instruction set, so that the same loops are compiled for each.
#define YOKE_INLINE [[gnu::always_inline]] inline

namespace yoke::comm {
namespace {

using std::uint32_t;

// By a mask, for g++ would turn a ?: around floating-point operations into a branch, which ends vector code.
YOKE_INLINE uint32_t choose(bool first, uint32_t a, uint32_t b) {
  const uint32_t mask = 0U - uint32_t{first};
  return (a & mask) | (b & ~mask);
}

// to_float and to_f16 of tensor/dtype.h branch by the size of the number; these compute every case and choose, which
// the compiler turns into vector code. reduce_test.cc holds them to the same bits.
YOKE_INLINE float widen_f16(std::uint16_t rail) {
  const uint32_t sign = uint32_t{rail & 0x8000U} << 16;
  const uint32_t shifted = uint32_t{rail & 0x7fffU} << 13;
  // As the bits of a float the value is 2^112 too small, also where it is subnormal.
  const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112F);
  const uint32_t special = shifted | 0x7f800000U;
  return std::bit_cast<float>(sign | choose(shifted >= (0x7c00U << 13), special, finite));
}

YOKE_INLINE std::uint16_t narrow_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffU;
  const uint32_t not_a_number = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  const uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  uint32_t rest = choose(magnitude >= 0x38800000U, normal, subnormal);
  rest = choose(magnitude >= 0x477ff000U, 0x7c00U, rest);
  rest = choose(magnitude > 0x7f800000U, not_a_number, rest);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | rest);
}

YOKE_INLINE std::uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t not_a_number = (bits >> 16) | 0x40U;
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? not_a_number : rounded);
}

// How an element lies in memory (Stored), in what it is computed (Working), and the way between.
struct F32Element {
  using Stored = float;
  using Working = float;
  YOKE_INLINE static float load(float value) { return value; }
  YOKE_INLINE static float store(float value) { return value; }
};
struct Bf16Element {
  using Stored = std::uint16_t;
  using Working = float;
  YOKE_INLINE static float load(std::uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }
  YOKE_INLINE static std::uint16_t store(float value) { return narrow_bf16(value); }
};
struct F16Element {
  using Stored = std::uint16_t;
  using Working = float;
  YOKE_INLINE static float load(std::uint16_t value) { return widen_f16(value); }
  YOKE_INLINE static std::uint16_t store(float value) { return narrow_f16(value); }
};
struct I8Element {
  using Stored = std::int8_t;
  using Working = std::int32_t;
  YOKE_INLINE static std::int32_t load(std::int8_t value) { return value; }
  YOKE_INLINE static std::int8_t store(std::int32_t value) { return static_cast<std::int8_t>(value); }
};
struct I32Element {
  using Stored = std::int32_t;
  using Working = std::int32_t;
  YOKE_INLINE static std::int32_t load(std::int32_t value) { return value; }
  YOKE_INLINE static std::int32_t store(std::int32_t value) { return value; }
};

YOKE_INLINE float add(float a, float b) { return a + b; }
YOKE_INLINE std::int32_t add(std::int32_t a, std::int32_t b) {  // wraps, as unsigned addition does
  return static_cast<std::int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

template <ReduceOp op, class Working>
YOKE_INLINE Working combine(Working a, Working b) {
  // A NaN compares false with everything and differs from itself: in `a` it stays, in `b` it is taken.
  if constexpr (op == ReduceOp::kMax) return (a > b) | (a != a) ? a : b;
  if constexpr (op == ReduceOp::kMin) return (a < b) | (a != a) ? a : b;
  return add(a, b);
}

template <ReduceOp op, class Working>
YOKE_INLINE Working finish(Working value, Working inputs) {
  if constexpr (op == ReduceOp::kAvg) return value / inputs;
  return value;
}

template <class Element>
YOKE_INLINE typename Element::Working load(const std::byte* values, std::size_t index) {
  typename Element::Stored stored;
  std::memcpy(&stored, values + index * sizeof(stored), sizeof(stored));
  return Element::load(stored);
}
template <class Element>
YOKE_INLINE void store(std::byte* values, std::size_t index, typename Element::Working value) {
  const typename Element::Stored stored = Element::store(value);
  std::memcpy(values + index * sizeof(stored), &stored, sizeof(stored));
}

// Two inputs, the common case, in one pass.
template <class Element, ReduceOp op>
YOKE_INLINE void reduce_two(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count) {
  YOKE_SAME_ELEMENT_ONLY
  for (std::size_t i = 0; i < count; ++i) {
    const auto combined = combine<op>(load<Element>(a, i), load<Element>(b, i));
    store<Element>(out, i, finish<op, typename Element::Working>(combined, 2));
  }
}

// Any number of inputs, in blocks whose working values stay in the first-level cache (4 KB).
template <class Element, ReduceOp op>
YOKE_INLINE void reduce_many(std::byte* out, std::span<const void* const> inputs, std::size_t count) {
  constexpr std::size_t kBlock = 1024;
  typename Element::Working working[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t block = std::min(kBlock, count - begin);
    const auto part = [&](const void* values) {
      return static_cast<const std::byte*>(values) + begin * sizeof(typename Element::Stored);
    };
    const std::byte* first = part(inputs[0]);
    for (std::size_t i = 0; i < block; ++i) working[i] = load<Element>(first, i);
    for (const void* input : inputs.subspan(1)) {
      const std::byte* next = part(input);
      for (std::size_t i = 0; i < block; ++i) working[i] = combine<op>(working[i], load<Element>(next, i));
    }
    const auto divisor = static_cast<typename Element::Working>(inputs.size());
    std::byte* result = out + begin * sizeof(typename Element::Stored);
    for (std::size_t i = 0; i < block; ++i) store<Element>(result, i, finish<op>(working[i], divisor));
  }
}

template <class Element, ReduceOp op>
YOKE_INLINE void reduce_as(std::byte* out, std::span<const void* const> inputs, std::size_t count) {
  if (inputs.size() == 2) {
    reduce_two<Element, op>(out, static_cast<const std::byte*>(inputs[0]), static_cast<const std::byte*>(inputs[1]),
                            count);
  } else {
    reduce_many<Element, op>(out, inputs, count);
  }
}

template <class Element>
YOKE_INLINE void reduce_elements(std::byte* out, std::span<const void* const> inputs, std::size_t count, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return reduce_as<Element, ReduceOp::kSum>(out, inputs, count);
    case ReduceOp::kMax:
      return reduce_as<Element, ReduceOp::kMax>(out, inputs, count);
    case ReduceOp::kMin:
      return reduce_as<Element, ReduceOp::kMin>(out, inputs, count);
    case ReduceOp::kAvg:
      return reduce_as<Element, ReduceOp::kAvg>(out, inputs, count);
  }
}

YOKE_INLINE void reduce_any(std::byte* out, std::span<const void* const> inputs, std::size_t count, tensor::DType type,
                            ReduceOp op) {
  switch (type) {
    case tensor::DType::kF32:
      return reduce_elements<F32Element>(out, inputs, count, op);
    case tensor::DType::kBf16:
      return reduce_elements<Bf16Element>(out, inputs, count, op);
    case tensor::DType::kF16:
      return reduce_elements<F16Element>(out, inputs, count, op);
    case tensor::DType::kI8:
      return reduce_elements<I8Element>(out, inputs, count, op);
    case tensor::DType::kI32:
      return reduce_elements<I32Element>(out, inputs, count, op);
    default:  // check_operation() lets no other type pass
      YOKE_CHECK(false, "{} cannot be reduced", tensor::to_string(type));
  }
}

template <class Element>
void divide_elements(std::byte* values, std::size_t count, typename Element::Working ranks) {
  for (std::size_t i = 0; i < count; ++i) store<Element>(values, i, load<Element>(values, i) / ranks);
}

using ReduceFunction = void (*)(std::byte*, std::span<const void* const>, std::size_t, tensor::DType, ReduceOp);

void reduce_portable(std::byte* out, std::span<const void* const> inputs, std::size_t count, tensor::DType type,
                     ReduceOp op) {
  reduce_any(out, inputs, count, type, op);
}

#ifdef __x86_64__
// Chosen by a question to the processor rather than by target_clones, whose resolver runs before sanitizers are ready.
// Without FMA: a fused multiplication and addition would round otherwise than the portable code.
[[gnu::target("avx2")]] void reduce_avx2(std::byte* out, std::span<const void* const> inputs, std::size_t count,
                                         tensor::DType type, ReduceOp op) {
  reduce_any(out, inputs, count, type, op);
}
ReduceFunction best_reduce() { return __builtin_cpu_supports("avx2") ? reduce_avx2 : reduce_portable; }
#else
ReduceFunction best_reduce() { return reduce_portable; }
#endif

}  // namespace

void reduce_into(void* out, std::span<const void* const> inputs, std::size_t count, tensor::DType type, ReduceOp op) {
  YOKE_CHECK(!inputs.empty());
  static const ReduceFunction reduce = best_reduce();
  reduce(static_cast<std::byte*>(out), inputs, count, type, op);
}

void divide_by_ranks(void* values, std::size_t count, tensor::DType type, int ranks) {
  auto* bytes = static_cast<std::byte*>(values);
  switch (type) {
    case tensor::DType::kF32:
      return divide_elements<F32Element>(bytes, count, static_cast<float>(ranks));
    case tensor::DType::kBf16:
      return divide_elements<Bf16Element>(bytes, count, static_cast<float>(ranks));
    case tensor::DType::kF16:
      return divide_elements<F16Element>(bytes, count, static_cast<float>(ranks));
    case tensor::DType::kI8:
      return divide_elements<I8Element>(bytes, count, ranks);
    case tensor::DType::kI32:
      return divide_elements<I32Element>(bytes, count, ranks);
    default:  // check_operation() lets no other type pass
      YOKE_CHECK(false, "{} cannot be divided", tensor::to_string(type));
  }
}

}  // namespace yoke::comm
