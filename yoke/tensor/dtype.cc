#include "yoke/tensor/dtype.h"

namespace yoke::tensor {

std::string_view to_string(DType type) {
  for (const auto& [name, candidate] : enum_names(DType{})) {
    if (candidate == type) return name;
  }
  return "?";
}

float to_float(F16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000U} << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
  if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(subnormal) | sign);
}

F16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const auto with_sign = [&](std::uint32_t rest) { return F16{static_cast<std::uint16_t>(sign | rest)}; };
  if (magnitude > 0x7f800000U) return with_sign(0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return with_sign(0x7c00U);  // 65520 and more round to infinity
  if (magnitude >= 0x38800000U) {                           // 2^-14 and more: a normal number
    return with_sign((magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13);
  }
  // Adding 0.5 aligns the last kept bit with the last bit of a float: the processor's own rounding does the rest.
  const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
  return with_sign(std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U);
}

float to_float(F8E4m3 value) {
  const unsigned magnitude = value.bits & 0x7fU;
  const std::uint32_t sign = std::uint32_t{value.bits & 0x80U} << 24;
  if (magnitude == 0x7fU) return std::bit_cast<float>(sign | 0x7fc00000U);
  if (magnitude >= 8U) return std::bit_cast<float>(sign | ((magnitude << 20) + (120U << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-9F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(subnormal) | sign);
}

F8E4m3 to_f8e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const auto with_sign = [&](std::uint32_t rest) { return F8E4m3{static_cast<std::uint8_t>(sign | rest)}; };
  if (magnitude > 0x7f800000U) return with_sign(0x7fU);
  if (magnitude >= 0x43e00000U) return with_sign(0x7eU);  // 448 and more
  if (magnitude >= 0x3c800000U) {                         // 2^-6 and more: a normal number
    return with_sign((magnitude - (120U << 23) + 0x7ffffU + ((magnitude >> 20) & 1U)) >> 20);
  }
  // As for F16: adding 2^14 aligns the last kept bit, 2^-9, with the last bit of a float.
  const float aligned = std::bit_cast<float>(magnitude) + 0x1p14F;
  return with_sign(std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(0x1p14F));
}

}  // namespace yoke::tensor
