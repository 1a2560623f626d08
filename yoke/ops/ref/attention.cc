// Attention over pages of keys and values.
#include <algorithm>
#include <cmath>

#include "yoke/base/check.h"
#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/dequantize.h"
#include "yoke/ops/ref/dot.h"

namespace yoke {
namespace {

// Where the vector of a token's head lies in the pages.
std::byte* place(const Tensor& pages, const KvSequence& sequence, std::int64_t token, std::int64_t head) {
  const std::int64_t page_tokens = pages.extent(2);
  const std::int64_t page = sequence.pages[static_cast<std::size_t>(token / page_tokens)];
  const std::int64_t element = page * pages.stride(0) + head * pages.stride(1) + token % page_tokens * pages.stride(2);
  return pages.mutable_raw() + element * static_cast<std::int64_t>(size_of(pages.type()));
}

// A fresh token: its sequence, and its position there.
struct Query {
  const KvSequence* sequence;
  std::int64_t position;
};

std::vector<Query> queries_of(const KvView& view) {
  std::vector<Query> queries;
  for (const KvSequence& sequence : view.sequences) {
    for (std::int64_t i = 0; i < sequence.fresh; ++i) queries.push_back({&sequence, sequence.context + i});
  }
  return queries;
}

// One query head over its keys: scores first, then their exponentials and the weighted values, split by split.
void attend_one(const float* q, const Query& query, std::int64_t kv_head, const KvView& view,
                const AttentionOptions& options, std::span<float> y) {
  const KvSequence& sequence = *query.sequence;
  const std::int64_t end = query.position + 1;
  const std::int64_t begin = options.window > 0 ? std::max<std::int64_t>(0, end - options.window) : 0;
  std::vector<float> vector(y.size());
  std::vector<float> scores;
  for (std::int64_t token = begin; token < end; ++token) {
    ref::to_floats(place(view.keys, sequence, token, kv_head), view.keys.type(), 1, vector);
    scores.push_back(ref::dot(q, vector.data(), std::ssize(y)) * options.scale);
  }
  const float max = *std::max_element(scores.begin(), scores.end());
  std::fill(y.begin(), y.end(), 0.0F);
  float sum = 0;
  std::vector<float> split_y(y.size());
  for (std::int64_t token = begin; token < end;) {
    const std::int64_t split_end = std::min(end, (token / kAttentionSplit + 1) * kAttentionSplit);
    std::fill(split_y.begin(), split_y.end(), 0.0F);
    float split_sum = 0;
    for (; token < split_end; ++token) {
      const float weight = std::exp(scores[static_cast<std::size_t>(token - begin)] - max);
      split_sum += weight;
      ref::to_floats(place(view.values, sequence, token, kv_head), view.values.type(), 1, vector);
      for (std::size_t d = 0; d < y.size(); ++d) split_y[d] += weight * vector[d];
    }
    sum += split_sum;
    for (std::size_t d = 0; d < y.size(); ++d) y[d] += split_y[d];
  }
  for (float& value : y) value /= sum;
}

}  // namespace

void RefBackend::store_kv(const Tensor& k, const Tensor& v, const KvView& view) {
  view.check();
  const std::vector<Query> queries = queries_of(view);
  const Shape shape{std::ssize(queries), view.kv_heads(), view.head_width()};
  YOKE_CHECK(k.shape() == shape && v.shape() == shape, "{} and {} where {} is needed", to_string(k.shape()),
             to_string(v.shape()), to_string(shape));
  for (std::int64_t t = 0; t < std::ssize(queries); ++t) {
    const Query& query = queries[static_cast<std::size_t>(t)];
    for (std::int64_t h = 0; h < view.kv_heads(); ++h) {
      const auto width = static_cast<std::size_t>(view.head_width());
      ref::from_floats({k.row<float>(t) + h * k.stride(1), width}, view.keys.type(),
                       place(view.keys, *query.sequence, query.position, h));
      ref::from_floats({v.row<float>(t) + h * v.stride(1), width}, view.values.type(),
                       place(view.values, *query.sequence, query.position, h));
    }
  }
}

void RefBackend::attend(const Tensor& q, const KvView& view, const Tensor& y, const AttentionOptions& options) {
  view.check();
  const std::vector<Query> queries = queries_of(view);
  YOKE_CHECK(q.shape().rank() == 3 && q.shape() == y.shape() && q.extent(0) == std::ssize(queries) &&
                 q.extent(2) == view.head_width() && q.extent(1) % view.kv_heads() == 0,
             "{} into {} over {} queries of {} heads", to_string(q.shape()), to_string(y.shape()), queries.size(),
             view.kv_heads());
  const std::int64_t heads = q.extent(1);
  const std::int64_t heads_per_kv_head = heads / view.kv_heads();
  pool_.parallel_for(q.extent(0) * heads, 1, [&](Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::int64_t t = i / heads;
      const std::int64_t h = i % heads;
      attend_one(q.row<float>(t) + h * q.stride(1), queries[static_cast<std::size_t>(t)], h / heads_per_kv_head, view,
                 options, {y.mutable_row<float>(t) + h * y.stride(1), static_cast<std::size_t>(q.extent(2))});
    }
  });
}

}  // namespace yoke
