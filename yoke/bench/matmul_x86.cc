// AVX2, AVX-512, AVX512-BF16 and AVX512-VNNI. Each function carries its own target, so that the program runs everywhere
// and only machine_kernels() decides; tiles are as large as the registers hold.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#include "yoke/bench/matmul_isa.h"

namespace yoke {
namespace {

// 6 x 16: twelve sums, two of b, one of a in sixteen registers.
__attribute__((target("avx2,fma"))) void avx2_f32(const void* a_data, const void* b_data, std::size_t groups,
                                                  void* tile) {
  const auto* a = static_cast<const float*>(a_data);
  const auto* b = static_cast<const float*>(b_data);
  __m256 sums[6][2] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 6, b += 16) {
    const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      const __m256 ai = _mm256_broadcast_ss(a + i);
      sums[i][0] = _mm256_fmadd_ps(ai, b0, sums[i][0]);
      sums[i][1] = _mm256_fmadd_ps(ai, b1, sums[i][1]);
    }
  }
  auto* out = static_cast<float*>(tile);
  for (int i = 0; i < 6; ++i) {
    _mm256_storeu_ps(out + 16 * i, sums[i][0]);
    _mm256_storeu_ps(out + 16 * i + 8, sums[i][1]);
  }
}

// Pairs of bf16 become two f32 each, by a shift and a mask: no instruction multiplies them here.
__attribute__((target("avx2,fma"))) void avx2_bf16(const void* a_data, const void* b_data, std::size_t groups,
                                                   void* tile) {
  const auto* a = static_cast<const std::int32_t*>(a_data);
  const auto* b = static_cast<const std::int32_t*>(b_data);
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
  __m256 sums[4][2] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 4, b += 16) {
    __m256 even[2], odd[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 8 * j));
      even[j] = _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16));
      odd[j] = _mm256_castsi256_ps(_mm256_and_si256(pair, upper));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i pair = _mm256_set1_epi32(a[i]);
      const __m256 a_even = _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16));
      const __m256 a_odd = _mm256_castsi256_ps(_mm256_and_si256(pair, upper));
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j)
        sums[i][j] = _mm256_fmadd_ps(a_odd, odd[j], _mm256_fmadd_ps(a_even, even[j], sums[i][j]));
    }
  }
  auto* out = static_cast<float*>(tile);
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + 16 * i, sums[i][0]);
    _mm256_storeu_ps(out + 16 * i + 8, sums[i][1]);
  }
}

// Products of neighbours are added in 16 bits, which holds for a up to 127: what quantized weights have.
__attribute__((target("avx2"))) void avx2_i8(const void* a_data, const void* b_data, std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::int32_t*>(a_data);
  const auto* b = static_cast<const std::int32_t*>(b_data);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[6][2] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 6, b += 16) {
    const __m256i b0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
    const __m256i b1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 8));
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      const __m256i ai = _mm256_set1_epi32(a[i]);
      sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(_mm256_maddubs_epi16(ai, b0), ones));
      sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(_mm256_maddubs_epi16(ai, b1), ones));
    }
  }
  auto* out = static_cast<std::int32_t*>(tile);
  for (int i = 0; i < 6; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i), sums[i][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i + 8), sums[i][1]);
  }
}

// 12 x 32: twenty-four sums, two of b, and a from memory in thirty-two registers. The three differ in one instruction.
__attribute__((target("avx512f"))) void avx512_f32(const void* a_data, const void* b_data, std::size_t groups,
                                                   void* tile) {
  const auto* a = static_cast<const float*>(a_data);
  const auto* b = static_cast<const float*>(b_data);
  __m512 sums[12][2] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 12, b += 32) {
    const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      const __m512 ai = _mm512_set1_ps(a[i]);
      sums[i][0] = _mm512_fmadd_ps(ai, b0, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(ai, b1, sums[i][1]);
    }
  }
  auto* out = static_cast<float*>(tile);
  for (int i = 0; i < 12; ++i) {
    _mm512_storeu_ps(out + 32 * i, sums[i][0]);
    _mm512_storeu_ps(out + 32 * i + 16, sums[i][1]);
  }
}

__attribute__((target("avx512f,avx512bw,avx512bf16"))) void avx512_bf16(const void* a_data, const void* b_data,
                                                                        std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::int32_t*>(a_data);
  const auto* b = static_cast<const std::int32_t*>(b_data);
  __m512 sums[12][2] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 12, b += 32) {
    const auto b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
    const auto b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + 16));
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      const auto ai = reinterpret_cast<__m512bh>(_mm512_set1_epi32(a[i]));
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], ai, b0);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], ai, b1);
    }
  }
  auto* out = static_cast<float*>(tile);
  for (int i = 0; i < 12; ++i) {
    _mm512_storeu_ps(out + 32 * i, sums[i][0]);
    _mm512_storeu_ps(out + 32 * i + 16, sums[i][1]);
  }
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) void avx512_i8(const void* a_data, const void* b_data,
                                                                      std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::int32_t*>(a_data);
  const auto* b = static_cast<const std::int32_t*>(b_data);
  __m512i sums[12][2] = {};
  for (std::size_t k = 0; k < groups; ++k, a += 12, b += 32) {
    const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 16);
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      const __m512i ai = _mm512_set1_epi32(a[i]);
      sums[i][0] = _mm512_dpbusd_epi32(sums[i][0], ai, b0);
      sums[i][1] = _mm512_dpbusd_epi32(sums[i][1], ai, b1);
    }
  }
  auto* out = static_cast<std::int32_t*>(tile);
  for (int i = 0; i < 12; ++i) {
    _mm512_storeu_si512(out + 32 * i, sums[i][0]);
    _mm512_storeu_si512(out + 32 * i + 16, sums[i][1]);
  }
}

}  // namespace

std::vector<MatmulKernel> machine_kernels() {
  std::vector<MatmulKernel> kernels;
  const auto add = [&](std::string_view name, DType type, int rows, int columns, int group, auto multiply) {
    kernels.push_back(
        {.name = name, .type = type, .rows = rows, .columns = columns, .group = group, .multiply = multiply});
  };
  if (__builtin_cpu_supports("avx512f")) add("avx512", DType::kF32, 12, 32, 1, avx512_f32);
  if (__builtin_cpu_supports("avx512bf16")) add("avx512-bf16", DType::kBf16, 12, 32, 2, avx512_bf16);
  if (__builtin_cpu_supports("avx512vnni")) add("avx512-vnni", DType::kI8, 12, 32, 4, avx512_i8);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    add("avx2", DType::kF32, 6, 16, 1, avx2_f32);
    add("avx2", DType::kBf16, 4, 16, 2, avx2_bf16);
    add("avx2", DType::kI8, 6, 16, 4, avx2_i8);
  }
  return kernels;
}

}  // namespace yoke
#endif
