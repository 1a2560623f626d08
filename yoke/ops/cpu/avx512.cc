// AVX-512 with VNNI; with BF16 where the processor has it (instructions.cc asks). Twice: they differ in where weights
// are fetched to, and processors in what suits them.
#include "yoke/ops/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "yoke/ops/cpu/table.h"

namespace yoke::ops::cpu {
namespace {

struct Avx512 {
  using F = __m512;
  using I = __m512i;
  static constexpr int kRowsInt8 = 8;  // 8 sums in integers, 8 in floats, weights and masks: 32 registers hold them
  static constexpr int kRowsF32 = 4;

  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, F x) { _mm512_storeu_ps(to, x); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }

  static I iset(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I iload(const void* from) { return _mm512_loadu_si512(from); }
  static I iand(I a, I b) { return _mm512_and_si512(a, b); }
  static I iadd(I a, I b) { return _mm512_add_epi32(a, b); }
  static I isub(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I imul(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static I imax(I a, I b) { return _mm512_max_epi32(a, b); }
  static I add_words(I a, I b) { return _mm512_add_epi64(a, b); }
  template <int kBits>
  static I shift_right(I x) {
    return _mm512_srli_epi32(x, kBits);
  }
  template <int kBits>
  static I shift_left(I x) {
    return _mm512_slli_epi32(x, kBits);
  }
  static float max_of(F x) { return _mm512_reduce_max_ps(x); }
  static std::uint32_t not_below(F x, F least) { return _mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ); }
  static std::int32_t imax_of(I x) { return _mm512_reduce_max_epi32(x); }
  static std::int32_t isum_of(I x) { return _mm512_reduce_add_epi32(x); }
  // Four products of an unsigned and a signed byte each.
  static I dot(I sum, I a, I b) { return _mm512_dpbusd_epi32(sum, a, b); }
  // Bytes with 128 for zero, taken as they are: what they have too much comes off with the zero.
  static constexpr std::int32_t kByteOffset = 0;
  static I dot_bytes(I sum, I a, I b) { return dot(sum, a, b); }

  static F to_float(I x) { return _mm512_cvtepi32_ps(x); }
  static I nearest(F x) { return _mm512_cvtps_epi32(x); }
  static F bits(I x) { return _mm512_castsi512_ps(x); }
  static I load_bytes(const void* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static void store_bytes(std::int8_t* to, I x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(x));
  }
  static F load_f16(const void* from) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from))); }
  static F load_bf16(const void* from) {
    return bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from))), 16));
  }
  // To nearest, ties to even, as tensor::to_bf16.
  static void store_bf16(std::uint16_t* to, F x) {
    const I word = _mm512_castps_si512(x);
    const I odd = _mm512_and_si512(_mm512_srli_epi32(word, 16), iset(1));
    const I rounded = _mm512_srli_epi32(_mm512_add_epi32(word, _mm512_add_epi32(odd, iset(0x7fff))), 16);
    const I quiet = _mm512_or_si512(_mm512_srli_epi32(word, 16), iset(0x40));
    const I out = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(out));
  }
  // A byte is an f16 without its lowest mantissa bits, but for the bias: 2^8 makes up for it.
  static F fp8(I code) {
    const I sign = _mm512_slli_epi32(_mm512_and_si512(code, iset(0x80)), 8);
    const I rest = _mm512_slli_epi32(_mm512_and_si512(code, iset(0x7f)), 7);
    return mul(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_or_si512(sign, rest))), set(256));
  }
  static F e2m1(I code) {
    const F values = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6);
    return _mm512_permutexvar_ps(code, values);
  }
  // Into the second cache: the first of many processors has few places for what is under way (docs/performance.md).
  static constexpr std::int64_t kAhead = 4096;
  static void prefetch(const void* at) { _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T1); }
  static constexpr int kSumsAtOnce = 16;  // sums that registers hold

  // Lane i: the sum of the lanes of x[i].
  static F sums_of(const F* x) {
    F pairs[8];
    for (int i = 0; i < 8; ++i) {
      const F low = _mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]);
      const F high = _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]);
      pairs[i] = add(low, high);  // in each quarter: a, b, a, b
    }
    F fours[4];
    for (int i = 0; i < 4; ++i) {
      const F low = _mm512_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], _MM_SHUFFLE(1, 0, 1, 0));
      const F high = _mm512_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], _MM_SHUFFLE(3, 2, 3, 2));
      fours[i] = add(low, high);  // in each quarter: a, b, c, d
    }
    F eights[2];
    for (int i = 0; i < 2; ++i) {
      const F low = _mm512_shuffle_f32x4(fours[2 * i], fours[2 * i + 1], _MM_SHUFFLE(2, 0, 2, 0));
      const F high = _mm512_shuffle_f32x4(fours[2 * i], fours[2 * i + 1], _MM_SHUFFLE(3, 1, 3, 1));
      eights[i] = add(low, high);
    }
    const F low = _mm512_shuffle_f32x4(eights[0], eights[1], _MM_SHUFFLE(2, 0, 2, 0));
    const F high = _mm512_shuffle_f32x4(eights[0], eights[1], _MM_SHUFFLE(3, 1, 3, 1));
    return add(low, high);
  }
};

struct Avx512Near : Avx512 {
  static constexpr std::int64_t kAhead = 8192;
  static void prefetch(const void* at) { _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0); }
};

// Pairs of columns; two running sums, of every other pair, added up after each kFold pairs.
template <class Lanes, int T>
void bf16_tile(const PanelView& w, const std::byte* panel, const InputRows& x, const std::int32_t* rows, float* out) {
  const std::uint16_t* from[T];
  __m512 total[T];
  for (int t = 0; t < T; ++t) {
    from[t] = x.bf16 + rows[t] * x.columns;
    total[t] = _mm512_setzero_ps();
  }
  const std::int64_t columns = w.block * w.blocks;  // there are no scales before them
  for (std::int64_t k = 0; k < columns;) {
    const std::int64_t end = columns < k + 2 * kFold ? columns : k + 2 * kFold;
    __m512 sum[T][2];
    for (int t = 0; t < T; ++t) sum[t][0] = sum[t][1] = _mm512_setzero_ps();
    for (; k < end; k += 4, panel += 128) {
      Lanes::prefetch(panel + Lanes::kAhead);
      Lanes::prefetch(panel + Lanes::kAhead + 64);
      const auto first = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel));
      const auto second = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + 64));
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const auto even = reinterpret_cast<__m512bh>(_mm512_set1_epi32(load_word(from[t] + k)));
        const auto odd = reinterpret_cast<__m512bh>(_mm512_set1_epi32(load_word(from[t] + k + 2)));
        sum[t][0] = _mm512_dpbf16_ps(sum[t][0], first, even);
        sum[t][1] = _mm512_dpbf16_ps(sum[t][1], second, odd);
      }
    }
    for (int t = 0; t < T; ++t) total[t] = _mm512_add_ps(total[t], _mm512_add_ps(sum[t][0], sum[t][1]));
  }
  for (int t = 0; t < T; ++t) _mm512_storeu_ps(out + t * kPanelRows, total[t]);
}

template <class Lanes>
void multiply_bf16(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                   std::int64_t count, float* out) {
  const std::byte* const at = w.data + static_cast<std::size_t>(panel) * w.panel_bytes;
  in_tiles<8>(count, [&](auto T, std::int64_t first) {
    bf16_tile<Lanes, decltype(T)::value>(w, at, x, rows + first, out + first * kPanelRows);
  });
}

constexpr Kernels kTable = table_of<Avx512>("avx512", multiply_bf16<Avx512>);
constexpr Kernels kNearTable = table_of<Avx512Near>("avx512_near", multiply_bf16<Avx512Near>);

}  // namespace

const Kernels* avx512_kernels() { return &kTable; }
const Kernels* avx512_near_kernels() { return &kNearTable; }

}  // namespace yoke::ops::cpu

#else

namespace yoke::ops::cpu {
const Kernels* avx512_kernels() { return nullptr; }
const Kernels* avx512_near_kernels() { return nullptr; }
}  // namespace yoke::ops::cpu

#endif
