#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "yoke/base/check.h"
#include "yoke/ops/ref/backend.h"

namespace yoke {
namespace {

Candidates best_of(std::span<const float> row, const CandidateOptions& options) {
  const auto rank = [&](std::int32_t i) {
    const float x = row[static_cast<std::size_t>(i)];
    return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x;
  };
  std::vector<std::int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const std::int64_t count = std::min(options.count, std::ssize(row));
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](std::int32_t a, std::int32_t b) { return rank(a) > rank(b) || (rank(a) == rank(b) && a < b); });
  Candidates best{.max = rank(order.front())};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t index = order[static_cast<std::size_t>(i)];
    best.ids.push_back(index + options.first_id);
    best.logits.push_back(row[static_cast<std::size_t>(index)]);
  }
  // A vocabulary has 10^5 entries: in f32 the small ones at the end would be lost.
  for (const float x : row) best.sum += std::exp(static_cast<double>(x) - static_cast<double>(best.max));
  return best;
}

}  // namespace

std::vector<Candidates> RefBackend::candidates(const Tensor& logits, const CandidateOptions& options) {
  YOKE_CHECK(logits.shape().rank() == 2 && logits.extent(1) > 0 && options.count >= 1, "{} of {}", options.count,
             to_string(logits.shape()));
  std::vector<Candidates> rows(static_cast<std::size_t>(logits.extent(0)));
  pool_.parallel_for(logits.extent(0), 1, [&](Range range) {
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      rows[static_cast<std::size_t>(t)] =
          best_of({logits.row<float>(t), static_cast<std::size_t>(logits.extent(1))}, options);
    }
  });
  return rows;
}

}  // namespace yoke
