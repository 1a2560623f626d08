// What a step costs beside the model's computing: planning it, sharing the plan with the other ranks, and telling the
// front what came of it. Measured between threads of this process.
#pragma once
#include "yoke/base/units.h"

namespace yoke::engine {

// The median over many steps in which each of so many sequences makes a token.
Seconds measure_host_time(int rows, int ranks);

}  // namespace yoke::engine
