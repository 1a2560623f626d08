// The element types of tensors, and the two half-precision formats by their bits.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace yoke {

enum class DType { kF32, kBf16, kF16, kI8, kI32 };
constexpr auto enum_names(DType) {
  return std::array{std::pair{"f32", DType::kF32}, std::pair{"bf16", DType::kBf16}, std::pair{"f16", DType::kF16},
                    std::pair{"i8", DType::kI8}, std::pair{"i32", DType::kI32}};
}
std::string_view to_string(DType type);

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kI8:
      return 1;
    case DType::kBf16:
    case DType::kF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
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

}  // namespace yoke
