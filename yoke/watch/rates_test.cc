#include "yoke/watch/rates.h"

#include <gtest/gtest.h>

#include "yoke/watch/sample_testing.h"

namespace yoke::watch {
namespace {

TEST(Rates, AreTheGrowthOverTheNodesOwnTime) {
  const Sample before = sample_at(0, 1000, 0);
  const Sample after = sample_at(2, 501'000, 2000);
  const Rates rates = rates_between(&before, after);
  EXPECT_DOUBLE_EQ(rates.elapsed.value, 2);
  EXPECT_DOUBLE_EQ(rates.rails[0].received->value, 250'000);
  EXPECT_DOUBLE_EQ(rates.rails[1].received->value, 1000);
  EXPECT_DOUBLE_EQ(*rates.cpu_busy, 0.25);
}

TEST(Rates, OfACounterThatWasResetAreAbsent) {
  EXPECT_FALSE(growth(Total(5'000'000), Total(10), 1e12));
  EXPECT_FALSE(growth(Total(1LL << 40), Total(0), 1e12));
  EXPECT_FALSE(growth(std::nullopt, Total(10), 1e12));
  EXPECT_FALSE(growth(Total(10), std::nullopt, 1e12));
  EXPECT_FALSE(growth(Total(-1), Total(10), 1e12));
}

TEST(Rates, OfA32BitCounterSurviveItsWrap) {
  EXPECT_DOUBLE_EQ(*growth(Total(4'294'967'290), Total(10), 1e12), 16);
  EXPECT_DOUBLE_EQ(*growth(Total(4'294'967'295), Total(0), 1e12), 1);
}

TEST(Rates, BeyondWhatAnyPortCanAreAbsent) {
  EXPECT_FALSE(rate(Total(0), Total(1LL << 50), {1}));
  EXPECT_TRUE(rate(Total(0), Total(100'000'000'000), {1}));
}

TEST(Rates, AreAbsentAfterABootAndWithoutTime) {
  const Sample before = sample_at(100, 1000);
  const Sample booted = sample_at(1, 2000);
  EXPECT_FALSE(rates_between(&before, booted).rails[0].received);
  EXPECT_FALSE(rates_between(&before, before).rails[0].received);
  EXPECT_FALSE(rates_between(nullptr, booted).cpu_busy);
  EXPECT_FALSE(rate(Total(1), Total(2), {0}));
  EXPECT_FALSE(rate(Total(1), Total(2), {-1}));
}

TEST(Rates, DoNotFollowAWallClockThatJumps) {
  const Sample before = sample_at(0, 0);
  Sample after = sample_at(1, 125'000'000);
  after.time -= 7200;
  EXPECT_DOUBLE_EQ(rates_between(&before, after).rails[0].received->value, 125e6);
}

TEST(Rates, OfWhatAppearsMeanwhileAreAbsent) {
  Sample before = sample_at(0, 1000, 1000);
  before.rails.pop_back();
  const Rates rates = rates_between(&before, sample_at(1, 2000, 9000));
  EXPECT_TRUE(rates.rails[0].received);
  EXPECT_FALSE(rates.rails[1].received);
}

TEST(Rates, AGpuThatWasLostHasNone) {
  Sample before = sample_at(0);
  Sample after = sample_at(1);
  before.gpus.resize(1);
  after.gpus.resize(1);
  before.gpus[0].thermal_violation_ns = 0;
  after.gpus[0].thermal_violation_ns = 500'000'000;
  EXPECT_DOUBLE_EQ(*rates_between(&before, after).gpus[0].thermal_share, 0.5);
  before.gpus[0].lost = "GPU is lost";
  EXPECT_FALSE(rates_between(&before, after).gpus[0].thermal_share);
}

}  // namespace
}  // namespace yoke::watch
