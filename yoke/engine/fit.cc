#include "yoke/engine/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "yoke/base/error.h"
#include "yoke/spec/memory_reserve.h"

namespace yoke {
namespace {

constexpr Bytes reserve_of(Bytes available) { return memory_reserve(available, MemoryKind::kHost); }

Bytes need_in_all(const RankNeed& need, std::int64_t tokens) {
  return need.weights + need.work_space + Bytes{need.cache_per_token.value * tokens};
}

Bytes usable(Bytes available) { return available - reserve_of(available); }

// The fewest nodes, more than there are, of which even those with least memory would do with one rank on each.
std::optional<int> nodes_that_would_do(const FitQuestion& question) {
  std::set<std::string> nodes;
  Bytes least = question.ranks.front().of_node;
  for (const RankMemory& rank : question.ranks) {
    nodes.insert(rank.node);
    least = std::min(least, rank.of_node);
  }
  for (const int ranks : question.rank_counts) {
    if (ranks <= std::ssize(nodes)) continue;
    if (need_in_all(question.need(ranks), question.tokens_least) <= usable(least)) return ranks;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const FitQuestion& question, const RankMemory& rank, const RankNeed& need) {
  const auto would_do = nodes_that_would_do(question);
  const std::string hint =
      would_do ? fmt::format("{} nodes of this kind, one rank on each, would do", *would_do)
               : std::string("free memory, take a smaller or more quantized model, or a shorter --context");
  const std::string of_whom = rank.available < rank.of_node ? " for each of its ranks" : "";
  throw Error(
      ErrorCode::kExhausted,
      fmt::format("the model does not fit: it needs {} (weights {}, cache for {} tokens {}, work space {}), and {} "
                  "has {} available{}, of which {} stay free",
                  to_string(need_in_all(need, question.tokens_least)), to_string(need.weights), question.tokens_least,
                  to_string(Bytes{need.cache_per_token.value * question.tokens_least}), to_string(need.work_space),
                  rank.node, to_string(rank.available), of_whom, to_string(reserve_of(rank.available))),
      hint);
}

}  // namespace

std::int64_t fit_cache(const FitQuestion& question) {
  const RankNeed need = question.need(static_cast<int>(question.ranks.size()));
  std::int64_t tokens = question.tokens_wanted;
  for (const RankMemory& rank : question.ranks) {
    if (need_in_all(need, question.tokens_least) > usable(rank.available)) refuse(question, rank, need);
    const Bytes left = usable(rank.available) - need.weights - need.work_space;
    tokens = std::min(tokens, left.value / std::max<std::int64_t>(1, need.cache_per_token.value));
  }
  return tokens;
}

}  // namespace yoke
