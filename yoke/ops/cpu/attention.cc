// Attention in splits of the context: scores, exponentials and weighted values of each split by itself, then the splits
// of a head together, in order. So a head gives the same bits whether its splits are computed by one thread, as in a
// long prompt, or by several, as in a long answer.
#include <algorithm>
#include <cmath>

#include "yoke/ops/cpu/backend.h"

namespace yoke::ops::cpu {
namespace {

constexpr std::int64_t kHeadsAtOnce = 32;  // query heads of one unit: their scores stay in the cache

std::span<float> room_of(std::size_t index, std::int64_t count) {
  thread_local std::array<std::vector<float>, 3> rooms;
  std::vector<float>& room = rooms.at(index);
  if (std::ssize(room) < count) room.resize(static_cast<std::size_t>(count));
  return {room.data(), static_cast<std::size_t>(count)};
}

CacheKind cache_kind(tensor::DType type) {
  if (type == tensor::DType::kF32) return CacheKind::kF32;
  if (type == tensor::DType::kBf16) return CacheKind::kBf16;
  YOKE_CHECK(type == tensor::DType::kF16, "{} is no number to compute with", tensor::to_string(type));
  return CacheKind::kF16;
}

}  // namespace

// Rows of a sequence are taken together as far as their heads fit.
void CpuBackend::cut_attention(const AttentionCall& call) {
  units_.clear();
  const std::int64_t rows = std::max<std::int64_t>(1, kHeadsAtOnce / call.group);
  for (const StepSequence& sequence : step_.sequences) {
    for (std::int64_t row = 0; row < sequence.fresh; row += rows) {
      const tensor::Range range{sequence.first_row + row,
                                sequence.first_row + std::min<std::int64_t>(row + rows, sequence.fresh)};
      for (std::int64_t head = 0; head < call.heads / call.group; ++head) units_.push_back({&sequence, range, head});
    }
  }
}

// Up to the last row's own token.
std::int64_t CpuBackend::splits_of(const AttentionUnit& unit) const {
  const std::int64_t end = unit.sequence->context + unit.rows.end - unit.sequence->first_row;
  return tensor::ceil_divide(end, kAttentionSplit);
}

// Where the keys or the values of some tokens lie; those of a page lie one after the other.
void CpuBackend::locate(const AttentionCall& call, const AttentionUnit& unit, const Slab& cache, tensor::Range tokens,
                        const std::byte** to) const {
  const std::int64_t step = call.width * static_cast<std::int64_t>(tensor::size_of(cache.type));
  for (std::int64_t i = tokens.begin; i < tokens.end;) {
    const std::byte* at = place(cache, *unit.sequence, i, unit.kv_head);
    const std::int64_t page_end = std::min(tokens.end, i + step_.page_tokens - i % step_.page_tokens);
    for (; i < page_end; ++i, at += step) *to++ = at;
  }
}

void CpuBackend::attend_split(const AttentionCall& call, const AttentionUnit& unit, std::int64_t split,
                              const AttentionUnit* following, float* partials) const {
  const std::int64_t first_token = split * kAttentionSplit;
  const std::int64_t end = unit.sequence->context + unit.rows.end - unit.sequence->first_row;
  const std::int64_t tokens = std::min(kAttentionSplit, end - first_token);
  const std::int64_t count = unit.rows.size() * call.group;
  thread_local std::vector<AttentionHead> heads;
  heads.resize(static_cast<std::size_t>(count));
  const std::span<float> queries = room_of(0, count * call.padded);
  std::int64_t first_seen = tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = unit.rows.begin + i / call.group;
    const std::int64_t own_end = unit.sequence->context + row - unit.sequence->first_row + 1;
    const std::int64_t window = call.options.window;
    const std::int64_t own_begin = window > 0 ? std::max<std::int64_t>(0, own_end - window) : 0;
    float* const q = queries.data() + i * call.padded;
    std::copy_n(call.q + (row * call.heads + unit.kv_head * call.group + i % call.group) * call.width, call.width, q);
    std::fill(q + call.width, q + call.padded, 0.0F);
    AttentionHead& head = heads[static_cast<std::size_t>(i)];
    head = {.q = q,
            .begin = std::clamp<std::int64_t>(own_begin - first_token, 0, tokens),
            .end = std::clamp<std::int64_t>(own_end - first_token, 0, tokens),
            .partial = partials + i * call.partial};
    head.begin = std::min(head.begin, head.end);
    head.partial[1] = 0;  // nothing seen, unless the kernel says otherwise
    if (head.begin < head.end) first_seen = std::min(first_seen, head.begin);
  }
  if (first_seen == tokens) return;  // all of it lies before every window
  std::array<const std::byte*, 2 * kAttentionSplit + kTokensAhead> places;
  locate(call, unit, call.cache->keys, {first_token, first_token + tokens}, places.data());
  locate(call, unit, call.cache->values, {first_token, first_token + tokens}, places.data() + tokens);
  const bool is_last = first_token + tokens == end;  // of the unit
  const std::int64_t next = is_last ? 0 : first_token + tokens;
  const std::int64_t next_end = !is_last ? end : following != nullptr ? following->sequence->context : 0;
  const std::int64_t ahead = std::min(kTokensAhead, next_end - next);
  locate(call, is_last && following != nullptr ? *following : unit, call.cache->keys, {next, next + ahead},
         places.data() + 2 * tokens);
  std::fill_n(places.data() + 2 * tokens + ahead, kTokensAhead - ahead, places[0]);
  kernels_.attend({.places = places.data(),
                   .tokens = tokens,
                   .width = call.width,
                   .padded = call.padded,
                   .kind = cache_kind(call.cache->keys.type),
                   .scale = call.options.scale,
                   .heads = heads.data(),
                   .count = count,
                   .scores = room_of(1, count * kAttentionSplit).data()});
}

// partials: [splits, heads of the unit, max | sum | weighted values]
void CpuBackend::join_splits(const AttentionCall& call, const AttentionUnit& unit, const float* partials) const {
  const std::int64_t count = unit.rows.size() * call.group;
  const std::int64_t splits = splits_of(unit);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto partial = [&](std::int64_t split) { return partials + (split * count + i) * call.partial; };
    float most = -std::numeric_limits<float>::infinity();
    for (std::int64_t s = 0; s < splits; ++s) {
      if (partial(s)[1] != 0) most = std::max(most, partial(s)[0]);
    }
    const std::int64_t row = unit.rows.begin + i / call.group;
    float* const y = call.y + (row * call.heads + unit.kv_head * call.group + i % call.group) * call.width;
    std::fill(y, y + call.width, 0.0F);
    float sum = 0;
    for (std::int64_t s = 0; s < splits; ++s) {
      if (partial(s)[1] == 0) continue;
      const float factor = std::exp(partial(s)[0] - most);
      sum += partial(s)[1] * factor;
      for (std::int64_t d = 0; d < call.width; ++d) y[d] += partial(s)[2 + d] * factor;
    }
    for (std::int64_t d = 0; d < call.width; ++d) y[d] /= sum;
  }
}

void CpuBackend::attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) {
  YOKE_CHECK(q.shape.rank() == 3 && q.shape == y.shape && q.extent(0) == std::ssize(step_.queries) &&
                 cache.keys.shape.rank() == 4 && cache.keys.shape == cache.values.shape &&
                 cache.keys.type == cache.values.type && cache.keys.extent(2) == step_.page_tokens &&
                 q.extent(2) == cache.keys.extent(3) && q.extent(1) % cache.keys.extent(1) == 0,
             "{} into {} over {} queries of {} with {}", to_string(q.shape), to_string(y.shape), step_.queries.size(),
             to_string(cache.keys.shape), to_string(cache.values.shape));
  AttentionCall call{.q = ref::floats(q),
                     .y = ref::floats(y),
                     .cache = &cache,
                     .options = options,
                     .heads = q.extent(1),
                     .group = q.extent(1) / cache.keys.extent(1),
                     .width = q.extent(2)};
  call.padded = tensor::ceil_divide(call.width, kPanelRows) * kPanelRows;
  call.partial = call.padded + 2;
  cut_attention(call);
  const auto units = std::ssize(units_);
  const auto partials_of = [&](const AttentionUnit& unit) { return unit.rows.size() * call.group * call.partial; };
  if (units >= 2 * pool_.threads() || pool_.threads() == 1) {
    pool_.parallel_for(units, 1, [&](tensor::Range range) {
      for (std::int64_t u = range.begin; u < range.end; ++u) {
        const AttentionUnit& unit = units_[static_cast<std::size_t>(u)];
        const std::int64_t splits = splits_of(unit);
        float* const partials = room_of(2, splits * partials_of(unit)).data();
        const AttentionUnit* const following = u + 1 < units ? &units_[static_cast<std::size_t>(u + 1)] : nullptr;
        for (std::int64_t s = 0; s < splits; ++s)
          attend_split(call, unit, s, following, partials + s * partials_of(unit));
        join_splits(call, unit, partials);
      }
    });
    return;
  }
  std::int64_t splits_max = 0;
  std::int64_t largest = 0;
  for (const AttentionUnit& unit : units_) {
    splits_max = std::max(splits_max, splits_of(unit));
    largest = std::max(largest, partials_of(unit));
  }
  const std::int64_t room = splits_max * largest;
  if (std::ssize(partials_) < units * room) partials_.resize(static_cast<std::size_t>(units * room));
  pool_.parallel_for(units * splits_max, 1, [&](tensor::Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const AttentionUnit& unit = units_[static_cast<std::size_t>(i / splits_max)];
      const std::int64_t split = i % splits_max;
      if (split < splits_of(unit)) {
        attend_split(call, unit, split, nullptr, partials_.data() + i / splits_max * room + split * partials_of(unit));
      }
    }
  });
  for (std::int64_t u = 0; u < units; ++u) {
    join_splits(call, units_[static_cast<std::size_t>(u)], partials_.data() + u * room);
  }
}

}  // namespace yoke::ops::cpu
