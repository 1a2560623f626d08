#include "yoke/engine/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "yoke/base/error.h"

namespace yoke::engine {
namespace {

spec::MemoryNeed memory_need(const RankNeed& need) {
  return {.weights = need.weights,
          .work_space = need.work_space,
          .cache = [per_token = need.cache_per_token](std::int64_t tokens) {
            return spec::paged_cache(tokens, per_token);
          }};
}

// The fewest nodes, more than there are, of which even those with least memory would do with one rank on each.
std::optional<int> nodes_that_would_do(const FitQuestion& question) {
  std::set<std::string> nodes;
  Bytes least = question.ranks.front().of_node;
  const spec::MemoryKind kind = question.ranks.front().kind;
  for (const RankMemory& rank : question.ranks) {
    nodes.insert(rank.node);
    least = std::min(least, rank.of_node);
  }
  for (const int ranks : question.rank_counts) {
    if (ranks <= std::ssize(nodes)) continue;
    const spec::MemoryFit fit = spec::fit_memory(memory_need(question.need(ranks)), {least, kind}, question.tokens_min);
    if (fit.fits()) return ranks;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const FitQuestion& question, const RankMemory& rank, const RankNeed& need,
                         const spec::MemoryFit& fit) {
  const auto would_do = nodes_that_would_do(question);
  const std::string hint =
      would_do ? fmt::format("{} nodes of this kind, one rank on each, would do", *would_do)
               : std::string("free memory, take a smaller or more quantized model, or a shorter --context");
  const std::string of_whom = rank.available < rank.of_node ? " for each of its ranks" : "";
  throw Error(
      ErrorCode::kExhausted,
      fmt::format("the model does not fit: it needs {} (weights {}, cache for {} tokens {}, work space {}), and {} "
                  "has {} available{}, of which {} stay free",
                  to_string(fit.needed), to_string(need.weights), question.tokens_min,
                  to_string(spec::paged_cache(question.tokens_min, need.cache_per_token)), to_string(need.work_space),
                  rank.node, to_string(rank.available), of_whom, to_string(fit.reserve)),
      hint);
}

}  // namespace

std::int64_t fit_cache(const FitQuestion& question) {
  const RankNeed need = question.need(static_cast<int>(question.ranks.size()));
  std::int64_t tokens = question.tokens_wanted;
  for (const RankMemory& rank : question.ranks) {
    const spec::MemoryRoom room{.available = rank.available, .kind = rank.kind};
    const spec::MemoryFit fit = spec::fit_memory(memory_need(need), room, question.tokens_min);
    if (!fit.fits()) refuse(question, rank, need, fit);
    tokens = std::min(tokens, spec::tokens_that_fit(memory_need(need), room, question.tokens_wanted));
  }
  return tokens;
}

std::int64_t default_cache_tokens(const RankNeed& need, std::int64_t context) {
  constexpr std::int64_t kDefaultCache = std::int64_t{1} << 30;
  constexpr std::int64_t kStep = 1024;  // tokens, for a number that can be remembered
  const std::int64_t room = std::max(kDefaultCache, need.weights.value / 4);
  const std::int64_t tokens = room / std::max<std::int64_t>(1, need.cache_per_token.value);
  return std::min(context, std::max(tokens / kStep * kStep, kStep));
}

}  // namespace yoke::engine
