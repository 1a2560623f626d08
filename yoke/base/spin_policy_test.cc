#include "yoke/base/spin_policy.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using namespace literals;

// Looks until told to sleep; the clock moves so far with each look.
int looks(SpinPolicy& patience, FakeClock& clock, Seconds each) {
  int count = 0;
  while (patience.spin()) {
    clock.advance(each);
    ++count;
  }
  patience.slept();
  return count;
}

TEST(SpinPolicy, SpinsForAboutFiftyMicroseconds) {
  FakeClock clock;
  clock.advance(10_s);
  SpinPolicy patience(SpinPolicy::CoreSharing::kNone, clock);
  EXPECT_NEAR(looks(patience, clock, Seconds{1e-6}), 70, 20);
}

TEST(SpinPolicy, StopsSpinningThatIsAlwaysInVain) {
  FakeClock clock;
  clock.advance(10_s);
  SpinPolicy patience(SpinPolicy::CoreSharing::kNone, clock);
  for (int i = 0; i < 4; ++i) EXPECT_GT(looks(patience, clock, Seconds{1e-6}), 30);
  EXPECT_EQ(looks(patience, clock, Seconds{1e-6}), 0);
  clock.advance(Seconds{6e-3});
  for (int i = 0; i < 20; ++i) {
    EXPECT_GT(looks(patience, clock, Seconds{1e-6}), 30);
    patience.spin();
    patience.moved();  // data came while it spun
  }
}

TEST(SpinPolicy, NeverSpinsWhereRanksShareCores) {
  FakeClock clock;
  SpinPolicy patience(SpinPolicy::CoreSharing::kMoreThanCores, clock);
  EXPECT_FALSE(patience.spin());
}

// Two jumps: pushed aside for 3 ms in each of two waits.
void be_pushed_aside(SpinPolicy& patience, FakeClock& clock) {
  for (int jump = 0; jump < 2; ++jump) {
    for (int i = 0; i < 20; ++i) patience.spin();
    clock.advance(Seconds{3e-3});
    while (patience.spin()) {
    }
    patience.slept();
  }
}

TEST(SpinPolicy, StopsSpinningWhenOtherWorkTakesTheCoreAndTriesAgainLater) {
  FakeClock clock;
  clock.advance(10_s);
  SpinPolicy patience(SpinPolicy::CoreSharing::kNone, clock);
  be_pushed_aside(patience, clock);
  EXPECT_EQ(looks(patience, clock, Seconds{1e-6}), 0);
  clock.advance(Seconds{0.11});
  EXPECT_GT(looks(patience, clock, Seconds{1e-6}), 30) << "the first ban is over";
  be_pushed_aside(patience, clock);
  clock.advance(Seconds{0.11});
  EXPECT_EQ(looks(patience, clock, Seconds{1e-6}), 0) << "the second is longer";
}

TEST(SpinPolicy, TakesOneJumpForTheHypervisors) {
  FakeClock clock;
  clock.advance(10_s);
  SpinPolicy patience(SpinPolicy::CoreSharing::kNone, clock);
  for (int i = 0; i < 20; ++i) {
    for (int look = 0; look < 20; ++look) patience.spin();
    clock.advance(Seconds{3e-3});
    while (patience.spin()) {
    }
    patience.slept();
    clock.advance(1_s);
    EXPECT_GT(looks(patience, clock, Seconds{1e-6}), 30);
    patience.spin();
    patience.moved();
  }
}

}  // namespace
}  // namespace yoke
