// One collective with more and more ranks: how much of the bandwidth remains. Pure over finished runs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/collective_run.h"
#include "yoke/bench/run_record.h"

namespace yoke::bench {

// "1,2,4": ascending, each once. Throws Error(kUsage).
std::vector<int> parse_rank_counts(const std::string& text);

struct ScalingRow {
  std::int64_t size = 0;
  int ranks = 0;
  double time = 0;                   // us, median of the slowest rank
  double bus_bandwidth = 0;          // GB/s, from that median
  std::optional<double> efficiency;  // bus bandwidth over that of the fewest ranks above one
};

std::vector<ScalingRow> scaling_rows(const std::vector<CollectiveRun>& runs);

std::string scaling_text(const std::vector<CollectiveRun>& runs);  // table and plot
Document scaling_json(const std::vector<CollectiveRun>& runs);
RunRecord scaling_record(const std::vector<CollectiveRun>& runs);

}  // namespace yoke::bench
