#include "yoke/base/clock.h"

#include <gtest/gtest.h>

#include <regex>

namespace yoke {
namespace {

using namespace literals;

TEST(Deadline, ExpiresByTheClockItWasGiven) {
  FakeClock clock;
  const Deadline deadline = Deadline::after(2_s, clock);
  EXPECT_DOUBLE_EQ(deadline.remaining().value, 2);
  clock.advance(1.5_s);
  EXPECT_FALSE(deadline.expired());
  EXPECT_EQ(deadline.poll_timeout_ms(), 500);
  EXPECT_EQ(deadline.poll_timeout_ms(100), 100);
  clock.sleep(0.5_s);
  EXPECT_TRUE(deadline.expired());
  EXPECT_EQ(deadline.poll_timeout_ms(), 0);
}

TEST(Deadline, RoundsAPollUpSoThatALoopDoesNotSpin) {
  FakeClock clock;
  EXPECT_EQ(Deadline::after(100_us, clock).poll_timeout_ms(), 1);
}

TEST(Deadline, NeverAndAbsurdlyFarNeitherExpireNorOverflow) {
  EXPECT_FALSE(Deadline::never().expired());
  EXPECT_FALSE(Deadline::after(Seconds{1e300}).expired());
  EXPECT_EQ(Deadline::never().poll_timeout_ms(), 1000);
}

TEST(Clock, RealTimePasses) {
  const Instant before = real_clock().now();
  real_clock().sleep(2_ms);
  EXPECT_GE(to_seconds(real_clock().now() - before).value, 0.002);
  EXPECT_TRUE(std::regex_match(utc_now(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
}

}  // namespace
}  // namespace yoke
