// The element types of tensors, and the small floating-point formats by their bits. Collectives and kernels compute in
// the first five; the others are what model files hold besides.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace yoke::tensor {

enum class DType {
  kF32,
  kBf16,
  kF16,
  kI8,
  kI32,
  kF8E4m3,
  kF8E5m2,
  kF8E8m0,
  kU8,
  kBool,
  kI16,
  kU16,
  kU32,
  kI64,
  kU64,
  kF64,
};
constexpr auto enum_names(DType) {
  using D = DType;
  return std::array{
      std::pair{"f32", D::kF32},        std::pair{"bf16", D::kBf16},      std::pair{"f16", D::kF16},
      std::pair{"i8", D::kI8},          std::pair{"i32", D::kI32},        std::pair{"f8_e4m3", D::kF8E4m3},
      std::pair{"f8_e5m2", D::kF8E5m2}, std::pair{"f8_e8m0", D::kF8E8m0}, std::pair{"u8", D::kU8},
      std::pair{"bool", D::kBool},      std::pair{"i16", D::kI16},        std::pair{"u16", D::kU16},
      std::pair{"u32", D::kU32},        std::pair{"i64", D::kI64},        std::pair{"u64", D::kU64},
      std::pair{"f64", D::kF64}};
}
std::string_view to_string(DType type);

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kI8:
    case DType::kF8E4m3:
    case DType::kF8E5m2:
    case DType::kF8E8m0:
    case DType::kU8:
    case DType::kBool:
      return 1;
    case DType::kBf16:
    case DType::kF16:
    case DType::kI16:
    case DType::kU16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
      return 8;
  }
  return 0;
}

// bfloat16: the upper half of a float. Rounds to nearest, ties to even; a NaN stays one.
struct Bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(Bf16, Bf16) = default;
};
constexpr float to_float(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
constexpr Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

// IEEE binary16. Rounds to nearest, ties to even, with subnormals and infinities.
struct F16 {
  std::uint16_t bits = 0;
  friend bool operator==(F16, F16) = default;
};
float to_float(F16 value);
F16 to_f16(float value);

// FP8 E4M3 as in the OCP 8-bit specification: bias 7, no infinities, 0x7f and 0xff are NaN, 448 the largest. Rounds to
// nearest, ties to even; what is beyond 448 becomes 448, as quantizers want it.
struct F8E4m3 {
  std::uint8_t bits = 0;
  friend bool operator==(F8E4m3, F8E4m3) = default;
};
float to_float(F8E4m3 value);
F8E4m3 to_f8e4m3(float value);

// FP4 E2M1, two to a byte in files, by their codes: a sign bit above three bits of magnitude.
inline constexpr std::array<float, 16> kE2m1Values = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                                      -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

// The C++ type of each element type that is read through a pointer.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::kF32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::kF64> {};
template <>
struct DTypeOf<Bf16> : std::integral_constant<DType, DType::kBf16> {};
template <>
struct DTypeOf<F16> : std::integral_constant<DType, DType::kF16> {};
template <>
struct DTypeOf<F8E4m3> : std::integral_constant<DType, DType::kF8E4m3> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<DType, DType::kI8> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::kU8> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::kI32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::kI64> {};

}  // namespace yoke::tensor
