// Attention over one split of the context, over the vectors of one instruction set (see linear_loops.h).
//
// Keys and values go from the cache to registers once for each few query heads that see the same tokens. What is read
// kTokensAhead later is fetched meanwhile, from keys to values and on to the next split: pages lie apart, so hardware
// sees no stream. A head's bits do not depend on which heads are computed with it: it has sums of its own, in one
// order.
#pragma once
#include <cstring>
#include <type_traits>

#include "yoke/ops/cpu/row_loops.h"

namespace yoke::ops::cpu {
namespace {

// Sixteen numbers of a key or a value from column d on, zeros beyond its width. kWholeBf16: the cache is bf16 and the
// width a multiple of sixteen, as in most models.
template <class Lanes, bool kWholeBf16>
typename Lanes::F cached(const AttentionSplit& split, const std::byte* head, std::int64_t d) {
  if constexpr (kWholeBf16) {
    return Lanes::load_bf16(head + d * 2);
  } else {
    const std::int64_t size = split.kind == CacheKind::kF32 ? 4 : 2;
    alignas(64) std::byte room[64] = {};
    const std::byte* at = head + d * size;
    if (d + kPanelRows > split.width) {
      std::memcpy(room, at, static_cast<std::size_t>((split.width - d) * size));
      at = room;
    }
    return split.kind == CacheKind::kF32    ? Lanes::load(reinterpret_cast<const float*>(at))
           : split.kind == CacheKind::kBf16 ? Lanes::load_bf16(at)
                                            : Lanes::load_f16(at);
  }
}

// Some heads that see the same tokens of a tile.
struct HeadsOfTile {
  std::int64_t first = 0;           // of the split's heads
  std::int64_t tile = 0;            // its first token
  std::int64_t begin = 0, end = 0;  // tokens of the tile that they see, counted from its first
  std::int64_t stride = 0;          // of scores, from head to head
  std::int64_t row_bytes = 0;       // of a key or a value
  std::int64_t ahead = 0;           // tokens; 0: other heads of this tile fetch
};

template <class Lanes>
void fetch_place(const AttentionSplit& split, const HeadsOfTile& own, std::int64_t place) {
  if (own.ahead == 0) return;
  const std::byte* const from = split.places[place + own.ahead];
  for (std::int64_t at = 0; at < own.row_bytes; at += 64) Lanes::prefetch(from + at);
}

// Scores of all tokens of the tile, seen or not: what is not seen is overwritten later. So many sums at a time that
// they stay in registers.
template <class Lanes, bool kWholeBf16, int H>
void score_heads(const AttentionSplit& split, const HeadsOfTile& own) {
  using F = typename Lanes::F;
  constexpr int kRound = static_cast<int>(kPanelRows) / H;  // tokens whose scores fill a vector
  constexpr int kAtOnce = Lanes::kSumsAtOnce / H;
  for (std::int64_t round = own.tile; round < own.tile + kTokenTile; round += kRound) {
    F sums[kPanelRows];
#pragma GCC unroll 16
    for (int some = 0; some < kRound; some += kAtOnce) {
      const std::byte* keys[kAtOnce];
      F sum[H][kAtOnce];
#pragma GCC unroll 16
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int64_t token = round + some + i;
        const std::int64_t place = token < split.tokens ? token : split.tokens - 1;
        keys[i] = split.places[place];
        fetch_place<Lanes>(split, own, place);
#pragma GCC unroll 4
        for (int h = 0; h < H; ++h) sum[h][i] = Lanes::set(0);
      }
      for (std::int64_t d = 0; d < split.padded; d += kPanelRows) {
        F q[H];
#pragma GCC unroll 4
        for (int h = 0; h < H; ++h) q[h] = Lanes::load(split.heads[own.first + h].q + d);
#pragma GCC unroll 16
        for (int i = 0; i < kAtOnce; ++i) {
          const F key = cached<Lanes, kWholeBf16>(split, keys[i], d);
#pragma GCC unroll 4
          for (int h = 0; h < H; ++h) sum[h][i] = Lanes::fma(q[h], key, sum[h][i]);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kAtOnce; ++i) {
#pragma GCC unroll 4
        for (int h = 0; h < H; ++h) sums[h * kRound + some + i] = sum[h][i];
      }
    }
    alignas(64) float scores[kPanelRows];
    Lanes::store(scores, Lanes::mul(Lanes::sums_of(sums), Lanes::set(split.scale)));
    for (int h = 0; h < H; ++h) {
      std::memcpy(split.scores + (own.first + h) * own.stride + round, scores + h * kRound, kRound * sizeof(float));
    }
  }
}

// Adds the weighted values of a tile, V vectors of each head from column d on.
template <class Lanes, bool kWholeBf16, int H, int V>
void add_columns(const AttentionSplit& split, const HeadsOfTile& own, std::int64_t d) {
  using F = typename Lanes::F;
  F sum[H][V];
#pragma GCC unroll 4
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) sum[h][j] = Lanes::load(split.heads[own.first + h].partial + 2 + d + j * kPanelRows);
  }
  for (std::int64_t i = own.tile + own.begin; i < own.tile + own.end; ++i) {
    if (d == 0) fetch_place<Lanes>(split, own, split.tokens + i);
    const std::byte* const at = split.places[split.tokens + i];
    F value[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) value[j] = cached<Lanes, kWholeBf16>(split, at, d + j * kPanelRows);
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
      const F weight = Lanes::set(split.scores[(own.first + h) * own.stride + i]);
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) sum[h][j] = Lanes::fma(weight, value[j], sum[h][j]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) Lanes::store(split.heads[own.first + h].partial + 2 + d + j * kPanelRows, sum[h][j]);
  }
}
template <class Lanes, bool kWholeBf16, int H>
void add_values(const AttentionSplit& split, const HeadsOfTile& own) {
  constexpr int V = Lanes::kSumsAtOnce / H;
  constexpr int kVectors = V > 4 ? 4 : V;
  std::int64_t d = 0;
  for (; d + kVectors * kPanelRows <= split.padded; d += kVectors * kPanelRows) {
    add_columns<Lanes, kWholeBf16, H, kVectors>(split, own, d);
  }
  for (; d < split.padded; d += kPanelRows) add_columns<Lanes, kWholeBf16, H, 1>(split, own, d);
}

// Scores to exponentials, and what they sum to: sixteen sums, each of every sixteenth token of the split, then those in
// order. What the head does not see counts as nothing, so the sum does not depend on how much of the split is there.
template <class Lanes>
void soften(const AttentionHead& head, std::int64_t tokens, float* scores) {
  using F = typename Lanes::F;
  const std::int64_t first = head.begin / kTokenTile * kTokenTile;  // tiles before it have no scores
  for (std::int64_t i = first; i < head.begin; ++i) scores[i] = scores[head.begin];
  for (std::int64_t i = head.end; i < tokens; ++i) scores[i] = scores[head.begin];
  F largest = Lanes::load(scores + first);
  for (std::int64_t i = first; i < head.end; i += kPanelRows) largest = Lanes::max(Lanes::load(scores + i), largest);
  alignas(64) float lanes[kPanelRows];
  Lanes::store(lanes, largest);
  float most = lanes[0];
  for (const float lane : lanes) most = lane > most ? lane : most;
  for (std::int64_t i = first; i < head.end; i += kPanelRows) {
    Lanes::store(scores + i, exponential<Lanes>(Lanes::sub(Lanes::load(scores + i), Lanes::set(most))));
  }
  for (std::int64_t i = first; i < head.begin; ++i) scores[i] = 0;
  for (std::int64_t i = head.end; i < tokens; ++i) scores[i] = 0;
  F sums = Lanes::set(0);
  for (std::int64_t i = first; i < head.end; i += kPanelRows) sums = Lanes::add(sums, Lanes::load(scores + i));
  Lanes::store(lanes, sums);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  head.partial[0] = most;
  head.partial[1] = sum;
}

// Calls `call` with some heads at a time that see the same of a tile: four where there are, else two, else one.
template <class Lanes, class Call>
void in_heads(const AttentionSplit& split, HeadsOfTile own, const Call& call) {
  constexpr std::int64_t kMax = Lanes::kSumsAtOnce >= 16 ? 4 : 2;
  const auto begin_of = [&](std::int64_t h) {
    return split.heads[h].begin > own.tile ? split.heads[h].begin - own.tile : 0;
  };
  const auto end_of = [&](std::int64_t h) {
    const std::int64_t end = split.heads[h].end - own.tile;
    return end < kTokenTile ? end : kTokenTile;
  };
  for (std::int64_t taken = 0; own.first < split.count; own.first += taken) {
    own.begin = begin_of(own.first);
    own.end = end_of(own.first);
    taken = 1;
    while (taken < kMax && own.first + taken < split.count && begin_of(own.first + taken) == own.begin &&
           end_of(own.first + taken) == own.end) {
      ++taken;
    }
    if (taken == 3) taken = 2;
    if (own.begin >= own.end) continue;
    if constexpr (kMax == 4) {
      if (taken == 4) call(std::integral_constant<int, 4>{}, own);
    }
    if (taken == 2) call(std::integral_constant<int, 2>{}, own);
    if (taken == 1) call(std::integral_constant<int, 1>{}, own);
    own.ahead = 0;
  }
}

template <class Lanes, bool kWholeBf16>
void attend_split(const AttentionSplit& split) {
  const std::int64_t row_bytes = split.width * (split.kind == CacheKind::kF32 ? 4 : 2);
  HeadsOfTile own{.stride = (split.tokens + kTokenTile - 1) / kTokenTile * kTokenTile,
                  .row_bytes = row_bytes,
                  .ahead = Lanes::kAhead < kTokensAhead * row_bytes ? Lanes::kAhead / row_bytes : kTokensAhead};
  for (own.tile = 0; own.tile < split.tokens; own.tile += kTokenTile) {
    in_heads<Lanes>(split, own, [&](auto H, const HeadsOfTile& some) {
      score_heads<Lanes, kWholeBf16, decltype(H)::value>(split, some);
    });
  }
  for (std::int64_t h = 0; h < split.count; ++h) {
    const AttentionHead& head = split.heads[h];
    for (std::int64_t d = 0; d < split.padded; ++d) head.partial[2 + d] = 0;
    if (head.begin < head.end) soften<Lanes>(head, own.stride, split.scores + h * own.stride);
  }
  for (own.tile = 0; own.tile < split.tokens; own.tile += kTokenTile) {
    in_heads<Lanes>(split, own, [&](auto H, const HeadsOfTile& some) {
      add_values<Lanes, kWholeBf16, decltype(H)::value>(split, some);
    });
  }
}

template <class Lanes>
void attend(const AttentionSplit& split) {
  if (split.kind == CacheKind::kBf16 && split.padded == split.width) return attend_split<Lanes, true>(split);
  attend_split<Lanes, false>(split);
}

}  // namespace
}  // namespace yoke::ops::cpu
