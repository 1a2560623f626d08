// What a series of times comes down to. Percentiles are of the nearest rank: p99 of fewer than 100 samples is the
// largest.
#pragma once
#include <span>

namespace yoke::bench {

struct SampleStats {
  double min = 0;
  double max = 0;
  double mean = 0;
  double p25 = 0;
  double p50 = 0;
  double p75 = 0;
  double p95 = 0;
  double p99 = 0;
  double deviation = 0;  // of the whole series, not an estimate from a sample of it

  double variation_percent() const { return mean > 0 ? deviation / mean * 100 : 0; }
};

SampleStats summarize(std::span<const double> samples);  // zeros where there are none

}  // namespace yoke::bench
