// What each rank of an engine would hold of a model, by the headers of its files alone: nothing else is read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::engine {

// What the largest rank of one stage holds, where all nodes have as much memory.
struct RankFootprint {
  int tensor = 1;  // ranks that share each layer
  int stages = 1;
  std::int64_t layers = 1;      // of this stage
  std::int64_t layers_all = 1;  // of the model
  Bytes weights;
  Bytes work_space;
  friend bool operator==(const RankFootprint&, const RankFootprint&) = default;
};
// For every number of ranks, up to `max`, that can share the model in this folder: its stages, equal ones once.
std::vector<RankFootprint> rank_footprints(const std::filesystem::path& model, int max);

}  // namespace yoke::engine
