// For tests only: a finished run with known numbers.
#pragma once
#include "yoke/bench/collective_run.h"

namespace yoke::bench {

inline CollectiveRun sample_run() {
  CollectiveRun run;
  run.options.size_min = {16384};
  run.options.size_max = {16384};
  run.options.factor = 2;
  run.transport = "local: 2 threads of one process";
  run.ranks = {{.host = "spark-d708", .pid = 1666603, .bus = "000f:01:00", .device_name = "NVIDIA GB10"},
               {.host = "spark-dbf4", .pid = 1669515, .bus = "000f:01:00", .device_name = "NVIDIA GB10"}};
  const auto placement = [](double time, double bandwidth) {
    PlacementResult result{.time = time, .algorithm_bandwidth = bandwidth, .bus_bandwidth = bandwidth, .wrong = 0};
    result.rank_times = {time, time};
    result.rank_late = {0, 12};
    result.iterations = {{time, time + 1}, {time, time + 2}};
    const double slowest[] = {time, time + 2};
    result.stats = summarize(slowest);
    result.straggler = {.rank = 1, .late = 12};
    return result;
  };
  run.rows = {{.size = 16384,
               .count = 4096,
               .type = "float",
               .op = "sum",
               .root = -1,
               .out_of_place = placement(31.67, 0.52),
               .in_place = placement(30.75, 0.53),
               .time = "2026-11-15 09:30:00"}};
  run.started = "2026-11-15 09:29:00";
  run.ended = "2026-11-15 09:30:00";
  return run;
}

}  // namespace yoke::bench
