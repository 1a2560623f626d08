// How the ranks of an engine share a model: by heads and columns where these can be cut so often, else layers are cut
// into stages, too. Pure.
#pragma once
#include <cstdint>
#include <vector>

#include "yoke/models/language_model.h"

namespace yoke::engine {

// The most ranks that share each layer: the largest divisor of `ranks` that is among the counts that work.
int tensor_size(int ranks, const std::vector<int>& counts_that_work);

// What a stage has, and what it takes besides its layers.
struct StageRoom {
  Bytes available;  // for one rank of it, of the poorest
  Bytes ends;       // embedding or head
};
// The first layer of each stage: every stage gets at least one, and layers go where they take the smallest part of the
// memory that is there. Error(kInvalid) where there are more stages than layers.
std::vector<std::int64_t> cut_layers(const std::vector<StageRoom>& stages, std::int64_t layers, Bytes layer);

// The place of a rank; `cut` has the first layers of all stages.
models::Mesh place_in_mesh(int rank, int tensor, const std::vector<std::int64_t>& cut, std::int64_t layers);

}  // namespace yoke::engine
