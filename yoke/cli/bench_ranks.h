// Where the ranks of a measured collective come from. One function, so that everything around it (options, tables,
// files, history) does not know whether ranks are threads here or processes on nodes.
#pragma once
#include "yoke/bench/measure_collective.h"

namespace yoke {

struct RankRequest {
  int ranks = 2;
};

// Runs the measurement on all ranks and returns what rank 0 has; the sink is told in the caller's thread or rank 0's.
CollectiveRun run_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink);

}  // namespace yoke
