// 64-bit Arm whose instructions multiply small matrices (Armv8.6: i8mm and bf16), as in a DGX Spark: two rows of input
// by two rows of weights in one instruction, twice what dot products do. All else is as in neon.cc.
//
// A register holds two rows of a panel, eight columns of bytes or four of bf16 each, made from lines by one zip; a
// result holds two rows of input by two of the panel.
#include "yoke/ops/cpu/kernels.h"

#if defined(__aarch64__)
#include "yoke/ops/cpu/neon_lanes.h"

namespace yoke::ops::cpu {
namespace {

constexpr int kPairs = kPanelRows / 2;  // of rows of a panel

// One row of input out of the results for two of them, as the sixteen rows of the panel lie in memory.
template <int kRow>
Neon::I row_of(const int32x4_t* results) {
  return Neon::each<Neon::I>([&](int i) {
    const int64x2_t first = vreinterpretq_s64_s32(results[2 * i]), second = vreinterpretq_s64_s32(results[2 * i + 1]);
    return vreinterpretq_s32_s64(kRow == 0 ? vzip1q_s64(first, second) : vzip2q_s64(first, second));
  });
}

// Eight columns of the panel: its rows two by two.
template <PanelKind kKind>
void load_pairs(const std::byte* line, int8x16_t* pairs) {
  Neon::I low, high;
  if constexpr (kKind == PanelKind::kInt4) {
    const Neon::I codes = Neon::iload(line), mask = Neon::iset(0x0f0f0f0f);
    low = Neon::iand(codes, mask);
    high = Neon::iand(Neon::shift_right<4>(codes), mask);
  } else {  // 128 for zero, made signed
    const auto made_signed = [](Neon::I codes) {
      return Neon::each<Neon::I>([&](int i) { return veorq_s32(codes.x[i], vdupq_n_s32(-0x7f7f7f80)); });
    };
    low = made_signed(Neon::iload(line));
    high = made_signed(Neon::iload(line + 64));
  }
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = vreinterpretq_s8_s32(vzip1q_s32(low.x[i], high.x[i]));
    pairs[2 * i + 1] = vreinterpretq_s8_s32(vzip2q_s32(low.x[i], high.x[i]));
  }
}

// P pairs of rows, as integer_tile: exact sums within a block, then the same step in f32.
template <PanelKind kKind, int P>
void integer_pairs(const PanelView& w, const std::byte* panel, const InputRows& x, const std::int32_t* rows,
                   float* out) {
  constexpr bool kNibbles = kKind == PanelKind::kInt4;
  Neon::F total[2 * P];
  for (Neon::F& one : total) one = Neon::set(0);
  const std::byte* line = panel + w.values_at;
  fetch_gap<Neon>(w, panel);
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    int32x4_t sum[P][kPairs];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      for (int i = 0; i < kPairs; ++i) sum[p][i] = vdupq_n_s32(0);
    }
    for (std::int64_t k = 0; k < w.block; k += 8, line += kNibbles ? 64 : 128) {
      Neon::prefetch(line + Neon::kAhead);
      if constexpr (!kNibbles) Neon::prefetch(line + Neon::kAhead + 64);
      int8x16_t weights[kPairs];
      load_pairs<kKind>(line, weights);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) {
        const std::int8_t* const at = x.i8 + b * w.block + k;
        const int8x16_t input =
            vcombine_s8(vld1_s8(at + rows[2 * p] * x.columns), vld1_s8(at + rows[2 * p + 1] * x.columns));
#pragma GCC unroll 16
        for (int i = 0; i < kPairs; ++i) sum[p][i] = vmmlaq_s32(sum[p][i], input, weights[i]);
      }
    }
    const Neon::F scale = block_scale<Neon>(w, panel, b);
    Neon::I zero = w.has_zeros ? Neon::load_bytes(panel + w.zeros_at + b * kPanelRows) : Neon::iset(kNibbles ? 8 : 128);
    if constexpr (!kNibbles) zero = Neon::isub(zero, Neon::iset(Neon::kByteOffset));
    for (int t = 0; t < 2 * P; ++t) {
      const std::int64_t at = rows[t] * x.blocks + b;
      const Neon::I all = t % 2 == 0 ? row_of<0>(sum[t / 2]) : row_of<1>(sum[t / 2]);
      const Neon::I exact = Neon::isub(all, Neon::imul(zero, Neon::iset(x.sums[at])));
      total[t] = Neon::fma(Neon::to_float(exact), Neon::mul(scale, Neon::set(x.scales[at])), total[t]);
    }
  }
  for (int t = 0; t < 2 * P; ++t) Neon::store(out + t * kPanelRows, total[t]);
}

template <PanelKind kKind>
void multiply_integers(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                       std::int64_t count, float* out) {
  const std::byte* const at = w.data + static_cast<std::size_t>(panel) * w.panel_bytes;
  std::int64_t t = 0;
  for (; t + 4 <= count; t += 4) integer_pairs<kKind, 2>(w, at, x, rows + t, out + t * kPanelRows);
  for (; t + 2 <= count; t += 2) integer_pairs<kKind, 1>(w, at, x, rows + t, out + t * kPanelRows);
  if (t < count) integer_tile<Neon, kKind, 1>(w, at, x, rows + t, out + t * kPanelRows);
}
void multiply_i8_pairs(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                       std::int64_t count, float* out) {
  if (w.kind == PanelKind::kInt8) return multiply_integers<PanelKind::kInt8>(w, panel, x, rows, count, out);
  multiply_integers<PanelKind::kInt4>(w, panel, x, rows, count, out);
}

float32x4_t add_products(float32x4_t sum, uint16x8_t input, uint32x4_t weights) {
  return vbfmmlaq_f32(sum, vreinterpretq_bf16_u16(input), vreinterpretq_bf16_u32(weights));
}

// P pairs of rows; with one row its pair is zeros, so that a row has the same bits alone and among others. Sums of
// 2 x kFold columns are added up.
template <int P>
void bf16_pairs(const PanelView& w, const std::byte* panel, const InputRows& x, const std::int32_t* rows, bool is_one,
                float* out) {
  float32x4_t total[P][kPairs];
  for (auto& pair : total) {
    for (float32x4_t& one : pair) one = vdupq_n_f32(0);
  }
  const std::int64_t columns = w.block * w.blocks;  // there are no scales before them
  for (std::int64_t k = 0; k < columns;) {
    const std::int64_t end = columns < k + 2 * kFold ? columns : k + 2 * kFold;
    float32x4_t sum[P][kPairs];
    for (auto& pair : sum) {
      for (float32x4_t& one : pair) one = vdupq_n_f32(0);
    }
    for (; k < end; k += 4, panel += 128) {
      Neon::prefetch(panel + Neon::kAhead);
      Neon::prefetch(panel + Neon::kAhead + 64);
      const Neon::I first = Neon::iload(panel), second = Neon::iload(panel + 64);
      uint16x8_t input[P];
      for (int p = 0; p < P; ++p) {
        const uint16x4_t upper = is_one ? vdup_n_u16(0) : vld1_u16(x.bf16 + rows[2 * p + 1] * x.columns + k);
        input[p] = vcombine_u16(vld1_u16(x.bf16 + rows[2 * p] * x.columns + k), upper);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kPairs; ++i) {
        const int32x4_t a = first.x[i / 2], b = second.x[i / 2];
        const uint32x4_t weights = vreinterpretq_u32_s32(i % 2 == 0 ? vzip1q_s32(a, b) : vzip2q_s32(a, b));
#pragma GCC unroll 16
        for (int p = 0; p < P; ++p) sum[p][i] = add_products(sum[p][i], input[p], weights);
      }
    }
    for (int p = 0; p < P; ++p) {
      for (int i = 0; i < kPairs; ++i) total[p][i] = vaddq_f32(total[p][i], sum[p][i]);
    }
  }
  for (int p = 0; p < P; ++p) {
    for (int i = 0; i < kPairs; ++i) {
      vst1_f32(out + 2 * p * kPanelRows + 2 * i, vget_low_f32(total[p][i]));
      if (!is_one) vst1_f32(out + (2 * p + 1) * kPanelRows + 2 * i, vget_high_f32(total[p][i]));
    }
  }
}

void multiply_bf16_pairs(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                         std::int64_t count, float* out) {
  const std::byte* const at = w.data + static_cast<std::size_t>(panel) * w.panel_bytes;
  std::int64_t t = 0;
  for (; t + 4 <= count; t += 4) bf16_pairs<2>(w, at, x, rows + t, false, out + t * kPanelRows);
  for (; t + 2 <= count; t += 2) bf16_pairs<1>(w, at, x, rows + t, false, out + t * kPanelRows);
  if (t < count) bf16_pairs<1>(w, at, x, rows + t, true, out + t * kPanelRows);
}

constexpr Kernels with_matrices() {
  Kernels table = table_of<Neon>("neon_matrix", multiply_bf16_pairs);
  table.multiply_i8 = multiply_i8_pairs;
  return table;
}
constexpr Kernels kTable = with_matrices();

}  // namespace

const Kernels* neon_matrix_kernels() { return &kTable; }

}  // namespace yoke::ops::cpu

#else

namespace yoke::ops::cpu {
const Kernels* neon_matrix_kernels() { return nullptr; }
}  // namespace yoke::ops::cpu

#endif
