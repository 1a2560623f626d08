// AVX2 with FMA and F16C: sixteen numbers are two registers.
#include "yoke/ops/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "yoke/ops/cpu/table.h"

namespace yoke::ops::cpu {
namespace {

struct Avx2 {
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  static constexpr int kRowsInt8 = 2;
  static constexpr int kRowsF32 = 1;
  static constexpr int kSumsAtOnce = 4;

  static F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static void store(float* to, F x) {
    _mm256_storeu_ps(to, x.a);
    _mm256_storeu_ps(to + 8, x.b);
  }
  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }

  static I iset(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static I iload(const void* from) {
    const auto* const at = static_cast<const __m256i*>(from);
    return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
  }
  static I iand(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
  static I iadd(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  static I isub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  static I imul(I x, I y) { return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
  static I imax(I x, I y) { return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
  static I add_words(I x, I y) { return {_mm256_add_epi64(x.a, y.a), _mm256_add_epi64(x.b, y.b)}; }
  template <int kBits>
  static I shift_right(I x) {
    return {_mm256_srli_epi32(x.a, kBits), _mm256_srli_epi32(x.b, kBits)};
  }
  template <int kBits>
  static I shift_left(I x) {
    return {_mm256_slli_epi32(x.a, kBits), _mm256_slli_epi32(x.b, kBits)};
  }
  static float max_of(F x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
  static std::uint32_t not_below(F x, F least) {
    const auto low = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x.a, least.a, _CMP_NLT_UQ)));
    const auto high = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x.b, least.b, _CMP_NLT_UQ)));
    return low | high << 8;
  }
  static std::int32_t imax_of(I x) {
    std::int32_t lanes[16], most = 0;
    std::memcpy(lanes, &x, sizeof lanes);
    for (const std::int32_t lane : lanes) most = lane > most ? lane : most;
    return most;
  }
  static std::int32_t isum_of(I x) {
    std::int32_t lanes[16], sum = 0;
    std::memcpy(lanes, &x, sizeof lanes);
    for (const std::int32_t lane : lanes) sum += lane;
    return sum;
  }
  // Codes are at most 15, so a pair is at most 2 x 15 x 127: sixteen bits hold it.
  static __m256i dot_half(__m256i sum, __m256i a, __m256i b) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
  }
  static I dot(I sum, I x, I y) { return {dot_half(sum.a, x.a, y.a), dot_half(sum.b, x.b, y.b)}; }
  // As signed bytes, the sign on the other factor: a pair is at most 2 x 128 x 127.
  static constexpr std::int32_t kByteOffset = 128;
  static __m256i dot_bytes_half(__m256i sum, __m256i a, __m256i b) {
    const __m256i weight = _mm256_xor_si256(a, _mm256_set1_epi8(-128));
    return dot_half(sum, _mm256_abs_epi8(weight), _mm256_sign_epi8(b, weight));
  }
  static I dot_bytes(I sum, I x, I y) { return {dot_bytes_half(sum.a, x.a, y.a), dot_bytes_half(sum.b, x.b, y.b)}; }

  static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  static I nearest(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
  static F bits(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
  static I load_bytes(const void* from) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
    return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
  }
  // The lower halves of sixteen words.
  static __m256i halves(I x) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    const __m256i mixed = _mm256_packus_epi32(_mm256_and_si256(x.a, low), _mm256_and_si256(x.b, low));
    return _mm256_permute4x64_epi64(mixed, _MM_SHUFFLE(3, 1, 2, 0));
  }
  static void store_bytes(std::int8_t* to, I x) {
    const __m256i sixteen = halves(x);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(sixteen), _mm256_extracti128_si256(sixteen, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
  static F load_f16(const void* from) {
    const auto* const at = static_cast<const __m128i*>(from);
    return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
  }
  static F load_bf16(const void* from) {
    const auto* const at = static_cast<const __m128i*>(from);
    return bits(
        shift_left<16>({_mm256_cvtepu16_epi32(_mm_loadu_si128(at)), _mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1))}));
  }
  static __m256i round_bf16(__m256 x) {
    const __m256i word = _mm256_castps_si256(x);
    const __m256i upper = _mm256_srli_epi32(word, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(word, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, is_nan);
  }
  static void store_bf16(std::uint16_t* to, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves({round_bf16(x.a), round_bf16(x.b)}));
  }
  // As of AVX-512: an f16 with another bias.
  static F fp8(I code) {
    const I sign = shift_left<8>(iand(code, iset(0x80)));
    const I rest = shift_left<7>(iand(code, iset(0x7f)));
    const __m256i f16 = halves(iadd(sign, rest));
    return mul({_mm256_cvtph_ps(_mm256_castsi256_si128(f16)), _mm256_cvtph_ps(_mm256_extracti128_si256(f16, 1))},
               set(256));
  }
  static __m256 e2m1_half(__m256i code) {
    const __m256 values = _mm256_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6);
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(code, _mm256_set1_epi32(8)), 28);
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(values, code), _mm256_castsi256_ps(sign));
  }
  static F e2m1(I code) { return {e2m1_half(code.a), e2m1_half(code.b)}; }
  static constexpr std::int64_t kAhead = 8192;  // bytes
  static void prefetch(const void* at) { _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0); }

  static F sums_of(const F* x) {
    alignas(32) float sums[16];
    for (int i = 0; i < 16; ++i) {
      const __m256 eight = _mm256_add_ps(x[i].a, x[i].b);
      const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
      const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
      sums[i] = _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
    }
    return load(sums);
  }
};

constexpr Kernels kTable = table_of<Avx2>("avx2");

}  // namespace

const Kernels* avx2_kernels() { return &kTable; }

}  // namespace yoke::ops::cpu

#else

namespace yoke::ops::cpu {
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace yoke::ops::cpu

#endif
