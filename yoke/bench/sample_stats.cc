#include "yoke/bench/sample_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace yoke::bench {

SampleStats summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  const auto percentile = [&](std::size_t percent) { return sorted[std::min(n - 1, (n * percent + 99) / 100 - 1)]; };
  SampleStats stats{.min = sorted.front(),
                    .max = sorted.back(),
                    .mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(n),
                    .p25 = percentile(25),
                    .p50 = percentile(50),
                    .p75 = percentile(75),
                    .p95 = percentile(95),
                    .p99 = percentile(99)};
  double squares = 0;
  for (const double value : sorted) squares += (value - stats.mean) * (value - stats.mean);
  stats.deviation = std::sqrt(squares / static_cast<double>(n));
  return stats;
}

}  // namespace yoke::bench
