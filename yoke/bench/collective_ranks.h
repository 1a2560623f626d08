// Starts the ranks of a measured collective (rank/start.h) and gathers what rank 0 reports. Everything around it
// (options, tables, files, history) does not know where the ranks come from.
#pragma once
#include <optional>

#include "yoke/bench/collective_request.h"
#include "yoke/bench/measure_collective.h"
#include "yoke/rank/rank_part.h"

namespace yoke::bench {

// Runs the measurement on all ranks and returns what rank 0 has; the sink is called in the caller's thread.
CollectiveRun run_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink);

// This process is one of the ranks: takes its part, with the sink on rank 0. Rank 0 returns the run, the others
// nothing.
std::optional<CollectiveRun> run_as_rank(const job::RankPlace& place, const RankRequest& request,
                                         const CollectiveOptions& options, CollectiveSink* sink);

// `yoke rank bench`; rank 0 writes the run to standard output, an event a line.
rank::RankKind collective_rank_kind();

}  // namespace yoke::bench
