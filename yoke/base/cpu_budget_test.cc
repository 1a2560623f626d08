#include "yoke/base/cpu_budget.h"

#include <gtest/gtest.h>

#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"

namespace yoke {
namespace {

using namespace std::chrono_literals;

TEST(CpuBudget, EndsALoopThatTakesTooLong) {
  CpuBudget budget(100ms, "the loop");
  const Deadline deadline = Deadline::after(Seconds{60});
  try {
    while (!deadline.expired()) budget.look();
    FAIL() << "it went on for a minute";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
    EXPECT_EQ(error.message(), "the loop takes more than 0.1 s of processor time");
  }
  EXPECT_GE(budget.used(), 100ms);
}

TEST(CpuBudget, DoesNotCountTimeInWhichNothingIsDone) {
  CpuBudget budget(50ms, "the wait");
  budget.check_closely();
  std::this_thread::sleep_for(200ms);
  EXPECT_NO_THROW(budget.check_closely());
}

}  // namespace
}  // namespace yoke
