#include "yoke/spec/memory_fit.h"

namespace yoke::spec {
namespace {

// Sums of estimates for absurd sizes stay inside 64 bits.
constexpr std::int64_t kPartMax = std::int64_t{1} << 60;
constexpr std::int64_t part_of_sum(Bytes bytes) { return std::clamp<std::int64_t>(bytes.value, 0, kPartMax); }

}  // namespace

MemoryFit fit_memory(const MemoryNeed& need, const MemoryRoom& room, std::int64_t tokens) {
  const Bytes cache = need.cache ? need.cache(tokens) : Bytes{};
  const Bytes needed{part_of_sum(need.weights) + part_of_sum(need.work_space) + part_of_sum(need.others) +
                     part_of_sum(cache)};
  const Bytes reserve = memory_reserve(room.available, room.kind);
  return {.needed = needed, .reserve = reserve, .left = room.available - reserve - needed};
}

std::int64_t tokens_that_fit(const MemoryNeed& need, const MemoryRoom& room, std::int64_t max) {
  const auto fits = [&](std::int64_t tokens) { return fit_memory(need, room, tokens).fits(); };
  if (max < 1 || !fits(1)) return 0;
  if (fits(max)) return max;
  std::int64_t low = 1;
  std::int64_t high = max;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

Bytes step_work_space(const StepShape& shape) {
  const std::int64_t row = 4 * shape.width + 2 * std::max(shape.heads_width, shape.mlp_width) / shape.ranks +
                           shape.heads_width / shape.ranks;
  return Bytes{4 * (shape.chunk_tokens * row + shape.sequences * shape.vocabulary / shape.ranks)};
}

}  // namespace yoke::spec
