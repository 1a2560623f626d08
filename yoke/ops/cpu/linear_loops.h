// Panels times input rows, over the vectors of one instruction set. `Lanes` says what sixteen numbers are there.
//
// Same bits on every instruction set and for any number of rows: integer sums are exact, products and sums of floats
// are fused and have one order for each output. Nothing of the standard library is called, as a function that is
// compiled here must not be merged with its twin elsewhere.
#pragma once
#include <cstring>
#include <type_traits>

#include "yoke/ops/cpu/kernels.h"

namespace yoke::ops::cpu {
namespace {

inline std::int32_t load_word(const void* from) {
  std::int32_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Calls tile(T, first) with T as large as possible, at most kMax, until `count` rows are done.
template <int T, class Tile>
void last_tile(std::int64_t rest, std::int64_t first, const Tile& tile) {
  if constexpr (T > 0) {
    if (rest == T) {
      tile(std::integral_constant<int, T>{}, first);
    } else {
      last_tile<T - 1>(rest, first, tile);
    }
  }
}
template <int kMax, class Tile>
void in_tiles(std::int64_t count, const Tile& tile) {
  std::int64_t i = 0;
  for (; i + kMax <= count; i += kMax) tile(std::integral_constant<int, kMax>{}, i);
  last_tile<kMax - 1>(count - i, i, tile);
}

// The scales of a block.
template <class Lanes>
typename Lanes::F block_scale(const PanelView& w, const std::byte* scales, std::int64_t block) {
  switch (w.scale_kind) {
    case ScaleKind::kF32:
      return Lanes::load(reinterpret_cast<const float*>(scales) + block * kPanelRows);
    case ScaleKind::kBf16:
      return Lanes::load_bf16(scales + block * kPanelRows * 2);
    case ScaleKind::kF16:
      return Lanes::load_f16(scales + block * kPanelRows * 2);
    case ScaleKind::kFp8:
      return Lanes::mul(Lanes::fp8(Lanes::load_bytes(scales + block * kPanelRows)), Lanes::set(w.global_scale));
    case ScaleKind::kNone:
      break;
  }
  return Lanes::set(1);
}

// Loops fetch Lanes::kAhead bytes beyond the weights that they read, so the end of one panel fetches the beginning of
// the next, scales included. What lies as far behind that as there are scales is fetched here.
template <class Lanes>
void fetch_gap(const PanelView& w, const std::byte* panel) {
  for (std::size_t at = 0; at < w.values_at; at += 64) Lanes::prefetch(panel + Lanes::kAhead + at);
}

// Products of whole numbers, exact within a block; then a step in f32 for each block.
template <class Lanes, PanelKind kKind, int T>
void integer_tile(const PanelView& w, const std::byte* panel, const InputRows& x, const std::int32_t* rows,
                  float* out) {
  using F = typename Lanes::F;
  using I = typename Lanes::I;
  constexpr bool kNibbles = kKind == PanelKind::kInt4;
  constexpr int kStep = kNibbles ? 8 : 4;  // columns of a line
  constexpr int kChains = T <= 4 && kNibbles ? 2 : 1;
  const std::int8_t* from[T];
  const float* scales[T];
  const std::int32_t* sums[T];
  F total[T];
  for (int t = 0; t < T; ++t) {
    from[t] = x.i8 + rows[t] * x.columns;
    scales[t] = x.scales + rows[t] * x.blocks;
    sums[t] = x.sums + rows[t] * x.blocks;
    total[t] = Lanes::set(0);
  }
  const I mask = Lanes::iset(0x0f0f0f0f);
  const std::byte* line = panel + w.values_at;
  fetch_gap<Lanes>(w, panel);
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    I sum[T][kChains];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      for (int c = 0; c < kChains; ++c) sum[t][c] = Lanes::iset(0);
    }
    for (std::int64_t k = 0; k < w.block; k += kStep, line += 64) {
      Lanes::prefetch(line + Lanes::kAhead);
      const I codes = Lanes::iload(line);
      if constexpr (kNibbles) {
        const I low = Lanes::iand(codes, mask);
        const I high = Lanes::iand(Lanes::template shift_right<4>(codes), mask);
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) {
          sum[t][0] = Lanes::dot(sum[t][0], low, Lanes::iset(load_word(from[t] + k)));
          sum[t][kChains - 1] = Lanes::dot(sum[t][kChains - 1], high, Lanes::iset(load_word(from[t] + k + 4)));
        }
      } else {
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) {
          sum[t][0] = Lanes::dot_bytes(sum[t][0], codes, Lanes::iset(load_word(from[t] + k)));
        }
      }
    }
    const F scale = block_scale<Lanes>(w, panel, b);
    I zero = w.has_zeros ? Lanes::load_bytes(panel + w.zeros_at + b * kPanelRows) : Lanes::iset(kNibbles ? 8 : 128);
    if constexpr (!kNibbles) zero = Lanes::isub(zero, Lanes::iset(Lanes::kByteOffset));
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      I all = sum[t][0];
      if (kChains == 2) all = Lanes::iadd(all, sum[t][kChains - 1]);
      const I exact = Lanes::isub(all, Lanes::imul(zero, Lanes::iset(sums[t][b])));
      total[t] = Lanes::fma(Lanes::to_float(exact), Lanes::mul(scale, Lanes::set(scales[t][b])), total[t]);
      from[t] += w.block;
    }
  }
  for (int t = 0; t < T; ++t) Lanes::store(out + t * kPanelRows, total[t]);
}

template <class Lanes, PanelKind kKind>
void multiply_i8_of(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                    std::int64_t count, float* out) {
  const std::byte* const at = w.data + static_cast<std::size_t>(panel) * w.panel_bytes;
  in_tiles<Lanes::kRowsInt8>(count, [&](auto T, std::int64_t first) {
    integer_tile<Lanes, kKind, decltype(T)::value>(w, at, x, rows + first, out + first * kPanelRows);
  });
}
template <class Lanes>
void multiply_i8(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                 std::int64_t count, float* out) {
  if (w.kind == PanelKind::kInt8) return multiply_i8_of<Lanes, PanelKind::kInt8>(w, panel, x, rows, count, out);
  multiply_i8_of<Lanes, PanelKind::kInt4>(w, panel, x, rows, count, out);
}

// The weights of the next columns as numbers: kStep vectors from one or more lines.
template <class Lanes, PanelKind kKind>
struct Decode {
  using F = typename Lanes::F;
  using I = typename Lanes::I;
  static constexpr bool kNibbles = kKind == PanelKind::kInt4 || kKind == PanelKind::kNvfp4;
  static constexpr int kStep = kNibbles ? 8 : 4;  // columns
  static constexpr bool kWholeBytes = kKind == PanelKind::kFp8 || kKind == PanelKind::kInt8;
  static constexpr int kBytes = kNibbles || kWholeBytes ? 64 : kKind == PanelKind::kF32 ? 256 : 128;

  static void step(const std::byte* line, F zero, F scale, F* to) {
    if constexpr (kKind == PanelKind::kF32) {
      for (int j = 0; j < 4; ++j) to[j] = Lanes::load(reinterpret_cast<const float*>(line) + j * kPanelRows);
    } else if constexpr (kKind == PanelKind::kF16) {
      for (int j = 0; j < 4; ++j) to[j] = Lanes::load_f16(line + j * kPanelRows * 2);
    } else if constexpr (kKind == PanelKind::kBf16) {
      for (int j = 0; j < 4; j += 2) {
        const I pair = Lanes::iload(line + j * kPanelRows * 2);
        to[j] = Lanes::bits(Lanes::template shift_left<16>(pair));
        to[j + 1] = Lanes::bits(Lanes::iand(pair, Lanes::iset(static_cast<std::int32_t>(0xffff0000U))));
      }
    } else if constexpr (kWholeBytes) {
      const I codes = Lanes::iload(line);
      const I low = Lanes::iset(255);
      to[0] = byte(Lanes::iand(codes, low), zero, scale);
      to[1] = byte(Lanes::iand(Lanes::template shift_right<8>(codes), low), zero, scale);
      to[2] = byte(Lanes::iand(Lanes::template shift_right<16>(codes), low), zero, scale);
      to[3] = byte(Lanes::template shift_right<24>(codes), zero, scale);
    } else {
      const I codes = Lanes::iload(line);
      to[0] = nibble(codes, zero, scale);
      to[4] = nibble(Lanes::template shift_right<4>(codes), zero, scale);
      to[1] = nibble(Lanes::template shift_right<8>(codes), zero, scale);
      to[5] = nibble(Lanes::template shift_right<12>(codes), zero, scale);
      to[2] = nibble(Lanes::template shift_right<16>(codes), zero, scale);
      to[6] = nibble(Lanes::template shift_right<20>(codes), zero, scale);
      to[3] = nibble(Lanes::template shift_right<24>(codes), zero, scale);
      to[7] = nibble(Lanes::template shift_right<28>(codes), zero, scale);
    }
  }
  static F byte(I code, F zero, F scale) {
    if constexpr (kKind == PanelKind::kFp8) {
      return Lanes::mul(Lanes::fp8(code), scale);
    } else {
      return Lanes::mul(Lanes::sub(Lanes::to_float(code), zero), scale);
    }
  }
  static F nibble(I codes, F zero, F scale) {
    const I code = Lanes::iand(codes, Lanes::iset(15));
    if constexpr (kKind == PanelKind::kNvfp4) {
      return Lanes::mul(Lanes::e2m1(code), scale);
    } else {
      return Lanes::mul(Lanes::sub(Lanes::to_float(code), zero), scale);
    }
  }
};

// Four running sums for each output, of every fourth column, so that additions need not wait for each other. After
// kFold columns they are added up: long sums of small numbers stay exact enough.
constexpr std::int64_t kFold = 128;

template <class Lanes, PanelKind kKind, int T>
void f32_tile(const PanelView& w, const std::byte* panel, const InputRows& x, const std::int32_t* rows, float* out) {
  using F = typename Lanes::F;
  using D = Decode<Lanes, kKind>;
  const float* from[T];
  F total[T], sum[T][4];
  for (int t = 0; t < T; ++t) {
    from[t] = x.f32 + rows[t] * x.columns;
    total[t] = Lanes::set(0);
    for (int c = 0; c < 4; ++c) sum[t][c] = Lanes::set(0);
  }
  const auto fold = [&] {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      total[t] = Lanes::add(total[t], Lanes::add(Lanes::add(sum[t][0], sum[t][1]), Lanes::add(sum[t][2], sum[t][3])));
      for (int c = 0; c < 4; ++c) sum[t][c] = Lanes::set(0);
    }
  };
  const std::byte* line = panel + w.values_at;
  fetch_gap<Lanes>(w, panel);
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    const F scale = block_scale<Lanes>(w, panel, b);
    const F zero = w.has_zeros ? Lanes::to_float(Lanes::load_bytes(panel + w.zeros_at + b * kPanelRows))
                               : Lanes::set(kKind == PanelKind::kInt8 ? 128 : 8);
    for (std::int64_t k = 0; k < w.block;) {
      const std::int64_t end = w.block < k + kFold ? w.block : k + kFold;
      for (; k < end; k += D::kStep, line += D::kBytes) {
        for (int ahead = 0; ahead < D::kBytes; ahead += 64) Lanes::prefetch(line + Lanes::kAhead + ahead);
        F weight[D::kStep];
        D::step(line, zero, scale, weight);
#pragma GCC unroll 8
        for (int j = 0; j < D::kStep; ++j) {
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) sum[t][j % 4] = Lanes::fma(weight[j], Lanes::set(from[t][k + j]), sum[t][j % 4]);
        }
      }
      if ((b * w.block + k) % kFold == 0) fold();
    }
    for (int t = 0; t < T; ++t) from[t] += w.block;
  }
  fold();
  for (int t = 0; t < T; ++t) Lanes::store(out + t * kPanelRows, total[t]);
}

template <class Lanes, PanelKind kKind>
void multiply_f32_of(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                     std::int64_t count, float* out) {
  const std::byte* const at = w.data + static_cast<std::size_t>(panel) * w.panel_bytes;
  in_tiles<Lanes::kRowsF32>(count, [&](auto T, std::int64_t first) {
    f32_tile<Lanes, kKind, decltype(T)::value>(w, at, x, rows + first, out + first * kPanelRows);
  });
}

template <class Lanes>
void multiply_f32(const PanelView& w, std::int64_t panel, const InputRows& x, const std::int32_t* rows,
                  std::int64_t count, float* out) {
  switch (w.kind) {
    case PanelKind::kF32:
      return multiply_f32_of<Lanes, PanelKind::kF32>(w, panel, x, rows, count, out);
    case PanelKind::kF16:
      return multiply_f32_of<Lanes, PanelKind::kF16>(w, panel, x, rows, count, out);
    case PanelKind::kBf16:
      return multiply_f32_of<Lanes, PanelKind::kBf16>(w, panel, x, rows, count, out);
    case PanelKind::kFp8:
      return multiply_f32_of<Lanes, PanelKind::kFp8>(w, panel, x, rows, count, out);
    case PanelKind::kInt8:
      return multiply_f32_of<Lanes, PanelKind::kInt8>(w, panel, x, rows, count, out);
    case PanelKind::kInt4:
      return multiply_f32_of<Lanes, PanelKind::kInt4>(w, panel, x, rows, count, out);
    case PanelKind::kNvfp4:
      return multiply_f32_of<Lanes, PanelKind::kNvfp4>(w, panel, x, rows, count, out);
  }
}

}  // namespace
}  // namespace yoke::ops::cpu
