// Times one operation on one rank, and makes one result of what all ranks measured.
#pragma once
#include <functional>
#include <vector>

#include "yoke/bench/bench_context.h"
#include "yoke/bench/collective_run.h"
#include "yoke/bench/shape.h"

namespace yoke::bench {

// Seconds, from the end of the barrier at which all ranks began.
struct RankTiming {
  double total = 0;     // of all iterations; without barriers where -z 3 says so
  double enqueued = 0;  // until the last operation was handed over
  Instant start{};      // that end of the barrier
  std::vector<double> begins;
  std::vector<double> ends;  // one per iteration, as begins
};

// `on_slow` is told how many iterations are done, after those that took so long that telling costs nothing beside.
RankTiming time_operation(const BenchContext& context, const comm::Collective& operation,
                          const CollectiveOptions& options, const std::function<void(int done)>& on_slow = {});

// Exchanges the timings; every rank gets the same result. `wrong` is left absent.
PlacementResult combine_timings(comm::Communicator& control, const RankTiming& own, const comm::Collective& operation,
                                const CollectiveOptions& options);

// Iterations of ours and theirs in turns: the median over iterations of the slowest rank.
BaselineResult time_baseline(const BenchContext& context, const comm::Collective& operation,
                             const std::function<void(const comm::Collective&)>& theirs,
                             const CollectiveOptions& options);

}  // namespace yoke::bench
