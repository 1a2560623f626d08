// When each rank began and ended each iteration of a measured collective, kept for --trace.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "yoke/bench/placement.h"
#include "yoke/bench/timing.h"
#include "yoke/spec/rank_trace.h"

namespace yoke::bench {

class IterationTrace {
 public:
  static constexpr std::size_t kRoom = 100'000;  // two for each iteration

  // The same calls on all ranks, as they compare their clocks.
  explicit IterationTrace(comm::Communicator& control);
  void add(const comm::Collective& operation, Placement placement, const RankTiming& timing,
           const CollectiveOptions& options);
  std::vector<spec::RankTrace> gather(comm::Communicator& control, const std::string& node);

 private:
  SpanLog spans_{kRoom};
  std::deque<std::string> names_;  // the log has views of them
  std::vector<spec::ClockMark> clock_;
  std::int32_t step_ = 0;
};

}  // namespace yoke::bench
