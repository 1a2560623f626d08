// Which layouts a model can be served in on these machines.
#pragma once
#include <vector>

#include "yoke/plan/planner.h"

namespace yoke::plan {

bool divides_heads(const spec::ModelFacts& model, int ranks);

// Those of all GPUs, or the one that the request fixes. Error(kUsage) where that one cannot be: heads that its tensor
// parallelism does not divide, or another one than yoke's engine makes of so many ranks. Empty where the engine cannot
// share the model out so often.
std::vector<Layout> possible_layouts(const Request& request);

// Error(kUsage) with the numbers of ranks that work.
[[noreturn]] void refuse_ranks(const Request& request);

}  // namespace yoke::plan
