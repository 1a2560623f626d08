// Heads into pages of keys and values, and attention over them.
#include <algorithm>
#include <cmath>

#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/dequantize.h"
#include "yoke/ops/ref/rows.h"

namespace yoke::ops::ref {
namespace {

void check_cache(const CacheLayer& cache, std::int64_t page_tokens) {
  YOKE_CHECK(cache.keys.shape.rank() == 4 && cache.keys.shape == cache.values.shape &&
                 cache.keys.type == cache.values.type && cache.keys.extent(2) == page_tokens,
             "{} and {} with pages of {} tokens", to_string(cache.keys.shape), to_string(cache.values.shape),
             page_tokens);
}

}  // namespace

// Where the vector of a token's head lies in the pages.
std::byte* RefBackend::place(const Slab& pages, const StepSequence& sequence, std::int64_t token,
                             std::int64_t head) const {
  const std::int64_t page = step_.pages[static_cast<std::size_t>(sequence.first_page + token / step_.page_tokens)];
  const std::int64_t vector = (page * pages.extent(1) + head) * step_.page_tokens + token % step_.page_tokens;
  return reinterpret_cast<std::byte*>(pages.address) +
         vector * pages.extent(3) * static_cast<std::int64_t>(tensor::size_of(pages.type));
}

// The pair (x[i], x[i + D/2]) is turned by its angle.
void RefBackend::turn(std::int64_t row, float* head) const {
  for (std::int64_t i = 0; i < step_.half; ++i) {
    const float cosine = step_.cosines[static_cast<std::size_t>(row * step_.half + i)];
    const float sine = step_.sines[static_cast<std::size_t>(row * step_.half + i)];
    const float a = head[i];
    const float b = head[i + step_.half];
    head[i] = a * cosine - b * sine;
    head[i + step_.half] = b * cosine + a * sine;
  }
}

void RefBackend::place_heads(const Slab& qkv, const HeadsOptions& options, const CacheLayer& cache, const Slab& q) {
  const Sight sight(*this);
  const std::int64_t H = options.heads;
  const std::int64_t Hkv = options.kv_heads;
  const std::int64_t D = options.width;
  const std::int64_t tokens = std::ssize(step_.queries);
  check_cache(cache, step_.page_tokens);
  expect(qkv, {tokens, (H + 2 * Hkv) * D});
  expect(q, {tokens, H, D});
  YOKE_CHECK(cache.keys.extent(1) == Hkv && cache.keys.extent(3) == D && 2 * step_.half == D, "{} for {} x {}",
             to_string(cache.keys.shape), Hkv, D);
  pool_.parallel_for(tokens, 4, [&](tensor::Range rows) {
    const std::span<float> head = scratch(0, D);
    const auto place_one = [&](const float* from, const Slab* norm, std::int64_t t) {
      std::copy(from, from + D, head.begin());
      if (norm != nullptr) norm_row(head.data(), floats(*norm), options.epsilon, D, head.data());
      turn(t, head.data());
    };
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const float* const row = floats(qkv) + t * (H + 2 * Hkv) * D;
      const Query& query = step_.queries[static_cast<std::size_t>(t)];
      for (std::int64_t h = 0; h < H; ++h) {
        place_one(row + h * D, options.q_norm, t);
        std::copy(head.begin(), head.end(), floats(q) + (t * H + h) * D);
      }
      for (std::int64_t h = 0; h < Hkv; ++h) {
        place_one(row + (H + h) * D, options.k_norm, t);
        from_floats(head, cache.keys.type, place(cache.keys, *query.sequence, query.position, h));
        from_floats({row + (H + Hkv + h) * D, static_cast<std::size_t>(D)}, cache.values.type,
                    place(cache.values, *query.sequence, query.position, h));
      }
    }
  });
}

// One query head over its keys: scores first, then their exponentials and the weighted values, split by split.
void RefBackend::attend_one(const float* q, const Query& query, std::int64_t kv_head, const CacheLayer& cache,
                            const AttentionOptions& options, std::span<float> y) const {
  const StepSequence& sequence = *query.sequence;
  const std::int64_t end = query.position + 1;
  const std::int64_t begin = options.window > 0 ? std::max<std::int64_t>(0, end - options.window) : 0;
  const std::span<float> vector = scratch(0, std::ssize(y));
  const std::span<float> scores = scratch(1, end - begin);
  for (std::int64_t token = begin; token < end; ++token) {
    to_floats(place(cache.keys, sequence, token, kv_head), cache.keys.type, 1, vector);
    scores[static_cast<std::size_t>(token - begin)] = dot(q, vector.data(), std::ssize(y)) * options.scale;
  }
  const float max = *std::max_element(scores.begin(), scores.end());
  const std::span<float> sums = scratch(2, std::ssize(y));
  const std::span<float> split_sums = scratch(3, std::ssize(y));
  std::fill(sums.begin(), sums.end(), 0.0F);
  float sum = 0;
  for (std::int64_t token = begin; token < end;) {
    const std::int64_t split_end = std::min(end, (token / kAttentionSplit + 1) * kAttentionSplit);
    std::fill(split_sums.begin(), split_sums.end(), 0.0F);
    float split_sum = 0;
    for (; token < split_end; ++token) {
      const float weight = std::exp(scores[static_cast<std::size_t>(token - begin)] - max);
      split_sum += weight;
      to_floats(place(cache.values, sequence, token, kv_head), cache.values.type, 1, vector);
      for (std::size_t d = 0; d < y.size(); ++d) split_sums[d] += weight * vector[d];
    }
    sum += split_sum;
    for (std::size_t d = 0; d < y.size(); ++d) sums[d] += split_sums[d];
  }
  for (std::size_t d = 0; d < y.size(); ++d) y[d] = sums[d] / sum;
}

void RefBackend::attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) {
  const Sight sight(*this);
  check_cache(cache, step_.page_tokens);
  YOKE_CHECK(q.shape.rank() == 3 && q.shape == y.shape && q.extent(0) == std::ssize(step_.queries) &&
                 q.extent(2) == cache.keys.extent(3) && q.extent(1) % cache.keys.extent(1) == 0,
             "{} into {} over {} queries of {} heads", to_string(q.shape), to_string(y.shape), step_.queries.size(),
             cache.keys.extent(1));
  const std::int64_t heads = q.extent(1);
  const std::int64_t width = q.extent(2);
  const std::int64_t heads_per_kv_head = heads / cache.keys.extent(1);
  pool_.parallel_for(q.extent(0) * heads, 1, [&](tensor::Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      attend_one(floats(q) + i * width, step_.queries[static_cast<std::size_t>(i / heads)],
                 i % heads / heads_per_kv_head, cache, options,
                 {floats(y) + i * width, static_cast<std::size_t>(width)});
    }
  });
}

}  // namespace yoke::ops::ref
