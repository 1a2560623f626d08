// Packed weights (layout.h) as numbers: as the operands of a product of the tensor cores, or one by one in f32.
#pragma once
#include "yoke/ops/cuda/layout.h"

namespace yoke::ops::cuda {

using u32 = unsigned;

// First in every kernel of a step: what the kernels before it in the stream have written is there from here on, and the
// next one may come onto the multiprocessors and do what does not depend on this one.
__device__ __forceinline__ void wait_for_previous() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ float bits_to_float(u32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ float bf16_to_float(u32 bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ float f16_to_float(u32 bits) {
  float value;
  asm("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(bits));
  return value;
}
// Two floats as bf16, rounded to nearest; the first in the lower half.
__device__ __forceinline__ u32 pack_bf16(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ __forceinline__ u32 pack_f16(float low, float high) {
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ __forceinline__ float low_of(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_of(u32 pair) { return __uint_as_float(pair & 0xffff0000U); }
__device__ __forceinline__ u32 subtract_bf16(u32 a, u32 b) {
  u32 difference;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
}
__device__ __forceinline__ u32 multiply_bf16(u32 a, u32 b) {
  u32 product;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
__device__ __forceinline__ float e4m3_to_float(u32 bits) {
  const float magnitude = __uint_as_float((bits & 0x7fU) << 20) * 0x1p120F;
  if ((bits & 0x7fU) == 0x7fU) return __uint_as_float(0x7fc00000U);
  return bits & 0x80U ? -magnitude : magnitude;
}
__device__ __forceinline__ float e2m1_to_float(u32 code) {
  const float magnitude = __uint_as_float((code & 7U) << 22) * 0x1p126F;
  return code & 8U ? -magnitude : magnitude;
}

// The number of operands that together are a weight exactly.
template <int KIND>
constexpr int operands() {
  return KIND == kF32 ? 3 : KIND == kF16 ? 2 : 1;
}

// A weight's fragment of one step, as pairs of bf16: `words` are the lane's words of that step. `zero` has the zeros of
// rows g and g + 8.
template <int KIND>
__device__ __forceinline__ void operands_of(const u32* words, int2 zero, u32 (&a)[operands<KIND>()][4]) {
  if constexpr (KIND == kInt4) {
    // 0x4300 is 128 in bf16, whose last four bits count by one.
    const u32 middle[2] = {(0x4300U | zero.x) * 0x10001U, (0x4300U | zero.y) * 0x10001U};
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      u32 pair;
      asm("lop3.b32 %0, %1, 0x000f000f, 0x43004300, 0xea;" : "=r"(pair) : "r"(words[0] >> (4 * p)));
      a[0][p] = subtract_bf16(pair, middle[p & 1]);
    }
  } else if constexpr (KIND == kNvfp4) {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const u32 pair = words[0] >> (4 * p);
      a[0][p] = multiply_bf16((pair & 0x00070007U) << 6 | (pair & 0x00080008U) << 12, 0x7e807e80U);  // 2^126
    }
  } else if constexpr (KIND == kInt8) {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const u32 word = words[p >> 1];
      // 0x4b000000 is 2^23 in f32, whose last bits count by one.
      const float middle = 8388608.0F + static_cast<float>(p & 1 ? zero.y : zero.x);
      const float low = __uint_as_float(__byte_perm(word, 0x4b000000U, p & 1 ? 0x7442 : 0x7440)) - middle;
      const float high = __uint_as_float(__byte_perm(word, 0x4b000000U, p & 1 ? 0x7443 : 0x7441)) - middle;
      a[0][p] = pack_bf16(low, high);
    }
  } else if constexpr (KIND == kFp8) {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const u32 pair = __byte_perm(words[p >> 1], 0, p & 1 ? 0x4342 : 0x4140);
      a[0][p] = multiply_bf16((pair & 0x007f007fU) << 4 | (pair & 0x00800080U) << 8, 0x7b807b80U);  // 2^120
    }
  } else if constexpr (KIND == kBf16) {
#pragma unroll
    for (int p = 0; p < 4; ++p) a[0][p] = words[p];
  } else {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      float low, high;
      if constexpr (KIND == kF16) {
        low = f16_to_float(words[p] & 0xffffU);
        high = f16_to_float(words[p] >> 16);
      } else {
        low = __uint_as_float(words[2 * p]);
        high = __uint_as_float(words[2 * p + 1]);
      }
#pragma unroll
      for (int i = 0; i < operands<KIND>(); ++i) {
        a[i][p] = pack_bf16(low, high);
        low -= low_of(a[i][p]);
        high -= high_of(a[i][p]);
      }
    }
  }
}

// The same weights in f32, without their scales: [pair][first, second].
template <int KIND>
__device__ __forceinline__ void numbers_of(const u32* words, int2 zero, float (&numbers)[8]) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int z = p & 1 ? zero.y : zero.x;
      float number;
      if constexpr (KIND == kInt4) {
        number = static_cast<float>(static_cast<int>(words[0] >> (4 * (p + 4 * j)) & 15U) - z);
      } else if constexpr (KIND == kNvfp4) {
        number = e2m1_to_float(words[0] >> (4 * (p + 4 * j)) & 15U);
      } else if constexpr (KIND == kInt8) {
        number = static_cast<float>(static_cast<int>(words[p >> 1] >> (8 * (2 * (p & 1) + j)) & 255U) - z);
      } else if constexpr (KIND == kFp8) {
        number = e4m3_to_float(words[p >> 1] >> (8 * (2 * (p & 1) + j)) & 255U);
      } else if constexpr (KIND == kBf16) {
        number = j == 0 ? low_of(words[p]) : high_of(words[p]);
      } else if constexpr (KIND == kF16) {
        number = f16_to_float(words[p] >> (16 * j) & 0xffffU);
      } else {
        number = __uint_as_float(words[2 * p + j]);
      }
      numbers[2 * p + j] = number;
    }
  }
}

// Which group a step belongs to: step / group_steps.
__device__ __forceinline__ int group_of(const PackedMatrix& m, int step) {
  return m.group_factor == 0 ? step : static_cast<int>(__umulhi(static_cast<u32>(step), m.group_factor));
}

// Scales of the rows g and g + 8 in a group, as they are stored.
__device__ __forceinline__ uint2 stored_scales(const PackedMatrix& m, int panel, int group, int g) {
  const long long at = (static_cast<long long>(panel) * m.groups + group) * 8 + g;
  if (m.scale_kind == kF32Scale) return *reinterpret_cast<const uint2*>(m.scales + at * 8);
  if (m.scale_kind == kE4m3Scale) return {*reinterpret_cast<const unsigned short*>(m.scales + at * 2), 0};
  return {*reinterpret_cast<const u32*>(m.scales + at * 4), 0};
}
__device__ __forceinline__ float2 scales_from(int scale_kind, uint2 stored) {
  if (scale_kind == kF32Scale) return {__uint_as_float(stored.x), __uint_as_float(stored.y)};
  if (scale_kind == kBf16Scale) return {low_of(stored.x), high_of(stored.x)};
  if (scale_kind == kF16Scale) return {f16_to_float(stored.x & 0xffffU), f16_to_float(stored.x >> 16)};
  return {e4m3_to_float(stored.x & 255U), e4m3_to_float(stored.x >> 8)};
}
__device__ __forceinline__ int default_zero(int kind) { return kind == kInt4 ? 8 : kind == kInt8 ? 128 : 0; }
__device__ __forceinline__ int2 zeros_of(const PackedMatrix& m, int panel, int group, int g) {
  if (m.zeros == nullptr) return {default_zero(m.kind), default_zero(m.kind)};
  const short2 zero =
      *reinterpret_cast<const short2*>(m.zeros + ((static_cast<long long>(panel) * m.groups + group) * 8 + g) * 2);
  return {zero.x, zero.y};
}

}  // namespace yoke::ops::cuda
