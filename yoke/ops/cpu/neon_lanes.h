// Sixteen numbers on 64-bit Arm: four registers. Only files that are compiled for Arm include this.
#pragma once
#include <arm_neon.h>

#include "yoke/ops/cpu/table.h"

namespace yoke::ops::cpu {
namespace {

struct Neon {
  struct F {
    float32x4_t x[4];
  };
  struct I {
    int32x4_t x[4];
  };
  static constexpr int kRowsInt8 = 3;  // 12 sums in integers, 12 in floats: 32 registers hold them
  static constexpr int kRowsF32 = 1;
  static constexpr int kSumsAtOnce = 4;

  template <class Result, class Function>
  static Result each(const Function& function) {
    return {{function(0), function(1), function(2), function(3)}};
  }

  static F set(float x) {
    return each<F>([&](int) { return vdupq_n_f32(x); });
  }
  static F load(const float* from) {
    return each<F>([&](int i) { return vld1q_f32(from + 4 * i); });
  }
  static void store(float* to, F a) {
    for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, a.x[i]);
  }
  static F add(F a, F b) {
    return each<F>([&](int i) { return vaddq_f32(a.x[i], b.x[i]); });
  }
  static F sub(F a, F b) {
    return each<F>([&](int i) { return vsubq_f32(a.x[i], b.x[i]); });
  }
  static F mul(F a, F b) {
    return each<F>([&](int i) { return vmulq_f32(a.x[i], b.x[i]); });
  }
  static F div(F a, F b) {
    return each<F>([&](int i) { return vdivq_f32(a.x[i], b.x[i]); });
  }
  static F min(F a, F b) {
    return each<F>([&](int i) { return vminq_f32(a.x[i], b.x[i]); });
  }
  static F max(F a, F b) {
    return each<F>([&](int i) { return vmaxq_f32(a.x[i], b.x[i]); });
  }
  static F fma(F a, F b, F c) {
    return each<F>([&](int i) { return vfmaq_f32(c.x[i], a.x[i], b.x[i]); });
  }

  static I iset(std::int32_t x) {
    return each<I>([&](int) { return vdupq_n_s32(x); });
  }
  static I iload(const void* from) {
    const auto* const at = static_cast<const std::uint8_t*>(from);
    return each<I>([&](int i) { return vreinterpretq_s32_u8(vld1q_u8(at + 16 * i)); });
  }
  static I iand(I a, I b) {
    return each<I>([&](int i) { return vandq_s32(a.x[i], b.x[i]); });
  }
  static I iadd(I a, I b) {
    return each<I>([&](int i) { return vaddq_s32(a.x[i], b.x[i]); });
  }
  static I isub(I a, I b) {
    return each<I>([&](int i) { return vsubq_s32(a.x[i], b.x[i]); });
  }
  static I imul(I a, I b) {
    return each<I>([&](int i) { return vmulq_s32(a.x[i], b.x[i]); });
  }
  static I imax(I a, I b) {
    return each<I>([&](int i) { return vmaxq_s32(a.x[i], b.x[i]); });
  }
  static I add_words(I a, I b) {
    return each<I>([&](int i) {
      return vreinterpretq_s32_s64(vaddq_s64(vreinterpretq_s64_s32(a.x[i]), vreinterpretq_s64_s32(b.x[i])));
    });
  }
  template <int kBits>
  static I shift_right(I a) {
    return each<I>([&](int i) { return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.x[i]), kBits)); });
  }
  template <int kBits>
  static I shift_left(I a) {
    return each<I>([&](int i) { return vshlq_n_s32(a.x[i], kBits); });
  }
  static float max_of(F a) { return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.x[0], a.x[1]), vmaxq_f32(a.x[2], a.x[3]))); }
  static std::uint32_t not_below(F a, F least) {
    constexpr std::uint32_t kBits[4] = {1, 2, 4, 8};
    const uint32x4_t bits = vld1q_u32(kBits);
    std::uint32_t found = 0;
    for (int i = 0; i < 4; ++i) found |= vaddvq_u32(vbicq_u32(bits, vcltq_f32(a.x[i], least.x[i]))) << 4 * i;
    return found;
  }
  static std::int32_t imax_of(I a) {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.x[0], a.x[1]), vmaxq_s32(a.x[2], a.x[3])));
  }
  static std::int32_t isum_of(I a) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.x[0], a.x[1]), vaddq_s32(a.x[2], a.x[3])));
  }
  // Codes are at most 15: as signed bytes they are what they were.
  static I dot(I sum, I a, I b) {
    return each<I>(
        [&](int i) { return vdotq_s32(sum.x[i], vreinterpretq_s8_s32(a.x[i]), vreinterpretq_s8_s32(b.x[i])); });
  }
  // Bytes with 128 for zero, made signed.
  static constexpr std::int32_t kByteOffset = 128;
  static I dot_bytes(I sum, I a, I b) {
    return each<I>([&](int i) {
      const int8x16_t weight = veorq_s8(vreinterpretq_s8_s32(a.x[i]), vdupq_n_s8(-128));
      return vdotq_s32(sum.x[i], weight, vreinterpretq_s8_s32(b.x[i]));
    });
  }

  static F to_float(I a) {
    return each<F>([&](int i) { return vcvtq_f32_s32(a.x[i]); });
  }
  static I nearest(F a) {
    return each<I>([&](int i) { return vcvtnq_s32_f32(a.x[i]); });
  }
  static F bits(I a) {
    return each<F>([&](int i) { return vreinterpretq_f32_s32(a.x[i]); });
  }
  static I widened(uint16x8_t low, uint16x8_t high) {
    return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), vreinterpretq_s32_u32(vmovl_high_u16(low)),
             vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), vreinterpretq_s32_u32(vmovl_high_u16(high))}};
  }
  static I load_bytes(const void* from) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const std::uint8_t*>(from));
    return widened(vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
  }
  // The lower half of each number, eight at a time.
  static uint16x8_t halves(I a, int first) {
    return vcombine_u16(vmovn_u32(vreinterpretq_u32_s32(a.x[first])), vmovn_u32(vreinterpretq_u32_s32(a.x[first + 1])));
  }
  static void store_bytes(std::int8_t* to, I a) {
    vst1_s8(to, vreinterpret_s8_u8(vmovn_u16(halves(a, 0))));
    vst1_s8(to + 8, vreinterpret_s8_u8(vmovn_u16(halves(a, 2))));
  }
  static uint16x8_t load_halves(const void* from, int eight) {
    return vreinterpretq_u16_u8(vld1q_u8(static_cast<const std::uint8_t*>(from) + 16 * eight));
  }
  static F from_f16(uint16x8_t low, uint16x8_t high) {
    const float16x8_t a = vreinterpretq_f16_u16(low), b = vreinterpretq_f16_u16(high);
    return {{vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a), vcvt_f32_f16(vget_low_f16(b)), vcvt_high_f32_f16(b)}};
  }
  static F load_f16(const void* from) { return from_f16(load_halves(from, 0), load_halves(from, 1)); }
  static F load_bf16(const void* from) {
    return bits(shift_left<16>(widened(load_halves(from, 0), load_halves(from, 1))));
  }
  static void store_bf16(std::uint16_t* to, F a) {
    const I rounded = each<I>([&](int i) {
      const uint32x4_t word = vreinterpretq_u32_f32(a.x[i]);
      const uint32x4_t upper = vshrq_n_u32(word, 16);
      const uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
      const uint32x4_t sum = vshrq_n_u32(vaddq_u32(word, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
      const uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
      return vreinterpretq_s32_u32(vbslq_u32(vceqq_f32(a.x[i], a.x[i]), sum, quiet));
    });
    vst1q_u16(to, halves(rounded, 0));
    vst1q_u16(to + 8, halves(rounded, 2));
  }
  // As of AVX-512: an f16 with another bias.
  static F fp8(I code) {
    const I f16 = iadd(shift_left<8>(iand(code, iset(0x80))), shift_left<7>(iand(code, iset(0x7f))));
    return mul(from_f16(halves(f16, 0), halves(f16, 2)), set(256));
  }
  // Twice the value is an integer: looked up as a byte, then halved.
  static F e2m1(I code) {
    static const std::int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const int8x16_t table = vld1q_s8(kTwice);
    return each<F>([&](int i) {
      const int8x16_t found = vqtbl1q_s8(table, vreinterpretq_u8_s32(code.x[i]));
      const int32x4_t twice = vshrq_n_s32(vshlq_n_s32(vreinterpretq_s32_s8(found), 24), 24);
      return vmulq_n_f32(vcvtq_f32_s32(twice), 0.5F);
    });
  }
  static constexpr std::int64_t kAhead = 4096;  // bytes
  static void prefetch(const void* at) { __builtin_prefetch(at); }

  static F sums_of(const F* a) {
    float sums[16];
    for (int i = 0; i < 16; ++i) {
      sums[i] = vaddvq_f32(vaddq_f32(vaddq_f32(a[i].x[0], a[i].x[1]), vaddq_f32(a[i].x[2], a[i].x[3])));
    }
    return load(sums);
  }
};

}  // namespace
}  // namespace yoke::ops::cpu
