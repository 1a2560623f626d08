// NEON, its dot product of int8 and of bf16. Each function carries its own target, so that the program runs on every
// 64-bit Arm and only machine_kernels() decides.
#if defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>

#include <cstdint>

#include "yoke/bench/matmul_isa.h"

namespace yoke {
namespace {

constexpr unsigned long kHasDotProduct = 1UL << 20;  // HWCAP_ASIMDDP
constexpr unsigned long kHasBf16 = 1UL << 14;        // HWCAP2_BF16

// 8 x 12: twenty-four sums, three of b, two of a in thirty-two registers.
void neon_f32(const void* a_data, const void* b_data, std::size_t groups, void* tile) {
  const auto* a = static_cast<const float*>(a_data);
  const auto* b = static_cast<const float*>(b_data);
  float32x4_t sums[8][3] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 8, b += 12) {
    const float32x4_t b0 = vld1q_f32(b), b1 = vld1q_f32(b + 4), b2 = vld1q_f32(b + 8);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      sums[i][0] = vfmaq_n_f32(sums[i][0], b0, a[i]);
      sums[i][1] = vfmaq_n_f32(sums[i][1], b1, a[i]);
      sums[i][2] = vfmaq_n_f32(sums[i][2], b2, a[i]);
    }
  }
  auto* out = static_cast<float*>(tile);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 3; ++j) vst1q_f32(out + 12 * i + 4 * j, sums[i][j]);
  }
}

// The instruction takes both with sign; a up to 127 is the same with and without.
__attribute__((target("arch=armv8.2-a+dotprod"))) void neon_i8(const void* a_data, const void* b_data,
                                                               std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::int32_t*>(a_data);
  const auto* b = static_cast<const std::int8_t*>(b_data);
  int32x4_t sums[8][3] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 8, b += 48) {
    const int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16), b2 = vld1q_s8(b + 32);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const int8x16_t ai = vreinterpretq_s8_s32(vdupq_n_s32(a[i]));
      sums[i][0] = vdotq_s32(sums[i][0], ai, b0);
      sums[i][1] = vdotq_s32(sums[i][1], ai, b1);
      sums[i][2] = vdotq_s32(sums[i][2], ai, b2);
    }
  }
  auto* out = static_cast<std::int32_t*>(tile);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 3; ++j) vst1q_s32(out + 12 * i + 4 * j, sums[i][j]);
  }
}

__attribute__((target("arch=armv8.2-a+bf16"))) void neon_bf16(const void* a_data, const void* b_data,
                                                              std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::uint32_t*>(a_data);
  const auto* b = static_cast<const std::uint16_t*>(b_data);
  float32x4_t sums[8][3] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 8, b += 24) {
    const bfloat16x8_t b0 = vreinterpretq_bf16_u16(vld1q_u16(b)), b1 = vreinterpretq_bf16_u16(vld1q_u16(b + 8)),
                       b2 = vreinterpretq_bf16_u16(vld1q_u16(b + 16));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const bfloat16x8_t ai = vreinterpretq_bf16_u32(vdupq_n_u32(a[i]));
      sums[i][0] = vbfdotq_f32(sums[i][0], ai, b0);
      sums[i][1] = vbfdotq_f32(sums[i][1], ai, b1);
      sums[i][2] = vbfdotq_f32(sums[i][2], ai, b2);
    }
  }
  auto* out = static_cast<float*>(tile);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 3; ++j) vst1q_f32(out + 12 * i + 4 * j, sums[i][j]);
  }
}

}  // namespace

std::vector<MatmulKernel> machine_kernels() {
  std::vector<MatmulKernel> kernels;
  const auto add = [&](std::string_view name, DType type, int group, auto multiply) {
    kernels.push_back({.name = name, .type = type, .rows = 8, .columns = 12, .group = group, .multiply = multiply});
  };
  add("neon", DType::kF32, 1, neon_f32);
  if (getauxval(AT_HWCAP2) & kHasBf16) add("neon-bf16", DType::kBf16, 2, neon_bf16);
  if (getauxval(AT_HWCAP) & kHasDotProduct) add("neon-dot", DType::kI8, 4, neon_i8);
  return kernels;
}

}  // namespace yoke
#endif
