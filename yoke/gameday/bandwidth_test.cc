#include "yoke/gameday/bandwidth.h"

#include <gtest/gtest.h>

namespace yoke::gameday {
namespace {

Bandwidth reaching(double largest, std::optional<double> limit) {
  return {
      .rows = {{.size = 1024, .time = 20, .bus_bandwidth = 9}, {.size = 8e6, .time = 100, .bus_bandwidth = largest}},
      .limit = limit};
}

TEST(Bandwidth, IsEvaluatedByTheLargestSizeAlone) {
  EXPECT_TRUE(reaching(0.24, 0.25).is_complete()) << "the small size is above the limit, and does not count";
  EXPECT_FALSE(reaching(0.1, 0.25).is_complete());
  EXPECT_EQ(reaching(0.24, 0.25).against_limit(), "96% of 0.25 GB/s");
}

TEST(Bandwidth, AboveTheLimitDidNotCrossTheLink) { EXPECT_FALSE(reaching(0.27, 0.25).is_complete()); }

TEST(Bandwidth, HasNoVerdictWhereNoLimitIsKnown) {
  EXPECT_FALSE(reaching(0.01, std::nullopt).is_complete());
  EXPECT_EQ(reaching(0.01, std::nullopt).against_limit(), "");
  std::string written;
  const Environment environment({.program = "/bin/false"});
  PhaseRun phase_run(environment, {.name = "a", .title = "A"}, [&](std::string_view text) { written += text; });
  expect_complete(phase_run, reaching(0.01, std::nullopt), "the link is whole");
  expect_complete(phase_run, reaching(0.24, 0.25), "this one is whole");
  EXPECT_NE(written.find("no verdict"), std::string::npos);
  const PhaseResult result = phase_run.end();
  EXPECT_EQ(result.held, std::vector<std::string>{"this one is whole"});
  EXPECT_EQ(result.verdict, Verdict::kPass);
}

}  // namespace
}  // namespace yoke::gameday
