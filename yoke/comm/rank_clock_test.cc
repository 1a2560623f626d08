#include "yoke/comm/rank_clock.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "yoke/comm/local/local.h"
#include "yoke/comm/rank_threads_testing.h"

namespace yoke::comm {
namespace {

// All threads have one clock: the true offset is 0, and a mark must say so within its own error.
TEST(RankClock, OfOneMachineIsTheSameWithinTheStatedError) {
  for (const int size : {1, 2, 5}) {
    auto ranks = local::make_local(size);
    const auto lines = run_on_threads(ranks, [](Communicator& comm) -> std::vector<std::string> {
      const spec::ClockMark mark = compare_clock(comm);
      if (comm.rank() == 0) return {mark.offset == 0 && mark.error == 0 ? "right" : "rank 0 has another clock"};
      if (mark.error < 0 || mark.error > 1'000'000'000) return {"an error of a second"};
      return {std::abs(mark.offset) <= mark.error ? "right" : "beyond its error"};
    });
    EXPECT_EQ(lines, std::vector<std::string>(static_cast<std::size_t>(size), "right"));
  }
}

}  // namespace
}  // namespace yoke::comm
