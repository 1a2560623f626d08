// What the numbers mean: a run against the limit of its link, and the rank that keeps the others waiting. Pure.
#pragma once
#include <optional>
#include <string>

#include "yoke/bench/collective_run.h"

namespace yoke::bench {

struct LinkVerdict {
  enum class Grade { kGood, kFair, kSlow, kAboveLimit, kCores } grade;
  double best = 0;      // bus bandwidth of the best row of at least 4 MiB, else of the longest; GB/s
  double fraction = 0;  // of the limit
  std::string text;     // a sentence for people
};

// Nothing where no limit is known, or nothing was measured. `busy` is the share of this machine's cores in use
// meanwhile: where all are busy they may be the limit, and no word is said against the link.
struct CoresInUse {
  double share = 0;
  int cores = 0;
};
std::optional<LinkVerdict> evaluate_link(const CollectiveRun& run, const CoresInUse& in_use = {});

// "rank 3 on spark-4 comes 120 us late", or "together": below a tenth of the time, and below 5 us, nobody is late.
std::string describe_straggler(const CollectiveRun& run, const PlacementResult& result);

}  // namespace yoke::bench
