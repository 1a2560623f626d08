// Whether a model fits into the memory of the ranks that are to share it, and how large a cache may be beside it:
// decided before anything is allocated. Pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/units.h"

namespace yoke {

struct RankMemory {
  std::string node;
  Bytes available;  // for this rank: of what its node has, its share
  Bytes of_node;    // what the node has for all of its ranks
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
  std::int64_t tokens_least = 0;   // fewer make no sense, or are not what the user asked for
  // The numbers of ranks that could share the model, and what each would take then: for advice.
  std::vector<int> rank_counts;
  std::function<RankNeed(int ranks)> need;
};

// Tokens of cache that all ranks have room for, at most those wanted. Error(kExhausted) names the first node that has
// too little, and how many nodes would do.
std::int64_t fit_cache(const FitQuestion& question);

}  // namespace yoke
