// Whether a model fits into the memory of the ranks that are to share it, and how large a cache may be beside it:
// decided before anything is allocated, by the function that plans use too (spec/memory_fit.h). Pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/spec/memory_fit.h"

namespace yoke::engine {

struct RankMemory {
  std::string node;
  Bytes available;  // for this rank: of what its node has, its share
  Bytes of_node;    // what the node has for all of its ranks
  spec::MemoryKind kind = spec::MemoryKind::kHost;
};

// What a rank takes, of the largest part.
struct RankNeed {
  Bytes weights;
  Bytes work_space;  // activations of a step
  Bytes cache_per_token;
};

struct FitQuestion {
  std::vector<RankMemory> ranks;
  std::int64_t tokens_wanted = 0;  // of the cache
  std::int64_t tokens_min = 0;     // fewer make no sense, or are not what the user asked for
  // The numbers of ranks that could share the model, and what each would take then: for advice.
  std::vector<int> rank_counts;
  std::function<RankNeed(int ranks)> need;
};

// Tokens of cache that all ranks have room for, at most those wanted. Error(kExhausted) names the first node that has
// too little, and how many nodes would do.
std::int64_t fit_cache(const FitQuestion& question);

// Tokens of a cache that nobody asked to be larger: the whole context, as far as it takes no more than 1 GiB or a
// quarter of the weights. A model that was trained for a million tokens would take all of a machine's memory otherwise.
std::int64_t default_cache_tokens(const RankNeed& need, std::int64_t context);

}  // namespace yoke::engine
