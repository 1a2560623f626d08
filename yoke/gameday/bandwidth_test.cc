#include "yoke/gameday/bandwidth.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

Bandwidth reaching(double largest, std::optional<double> limit) {
  return {
      .rows = {{.size = 1024, .time = 20, .bus_bandwidth = 9}, {.size = 8e6, .time = 100, .bus_bandwidth = largest}},
      .limit = limit};
}

TEST(Bandwidth, IsJudgedByTheLargestSizeAlone) {
  EXPECT_TRUE(reaching(0.24, 0.25).is_whole()) << "the small size is above the limit, and does not count";
  EXPECT_FALSE(reaching(0.1, 0.25).is_whole());
  EXPECT_EQ(reaching(0.24, 0.25).against_limit(), "96% of 0.25 GB/s");
}

TEST(Bandwidth, AboveTheLimitDidNotCrossTheLink) { EXPECT_FALSE(reaching(0.27, 0.25).is_whole()); }

TEST(Bandwidth, HasNoVerdictWhereNoLimitIsKnown) {
  EXPECT_FALSE(reaching(0.01, std::nullopt).is_whole());
  EXPECT_EQ(reaching(0.01, std::nullopt).against_limit(), "");
  std::string told;
  const Venue venue({.program = "/bin/false"});
  Scene scene(venue, {.name = "a", .title = "A"}, [&](std::string_view text) { told += text; });
  expect_whole(scene, reaching(0.01, std::nullopt), "the link is whole");
  expect_whole(scene, reaching(0.24, 0.25), "this one is whole");
  EXPECT_NE(told.find("no verdict"), std::string::npos);
  const PhaseResult result = scene.end();
  EXPECT_EQ(result.held, std::vector<std::string>{"this one is whole"});
  EXPECT_EQ(result.verdict, Verdict::kPass);
}

}  // namespace
}  // namespace yoke
