#include "yoke/gameday/pictures.h"

#include <gtest/gtest.h>

namespace yoke::gameday {
namespace {

spec::Cluster drawn(const std::string& rails_1, const std::string& rails_2, const std::string& rails_3 = "") {
  std::string text = "name: desk\nnodes:\n";
  int number = 1;
  for (const std::string& rails : {rails_1, rails_2, rails_3}) {
    if (!rails.empty())
      text += "  - { name: n" + std::to_string(number) + ", address: 10.0.0." + std::to_string(number) + ", rails: [" +
              rails + "] }\n";
    ++number;
  }
  return spec::parse_cluster(text, "test");
}

TEST(Pictures, TwoRailsOfACableAreTwoLinesBetweenTheirNodes) {
  EXPECT_EQ(
      draw_rails(drawn("{ interface: a0, address: 192.168.100.1/24 }, { interface: b0, address: 192.168.101.1/24 }",
                       "{ interface: a0, address: 192.168.100.2/24 }, { interface: b0, address: 192.168.101.2/24 }")),
      "n1  a0 192.168.100.1 ══ A ══ 192.168.100.2 a0  n2\n"
      "n1  b0 192.168.101.1 ══ B ══ 192.168.101.2 b0  n2\n");
}

TEST(Pictures, ANetworkOfThreeNodesIsASwitch) {
  EXPECT_EQ(
      draw_rails(drawn("{ interface: a0, address: 192.168.100.1/24 }", "{ interface: a0, address: 192.168.100.2/24 }",
                       "{ interface: a0, address: 192.168.100.3/24 }")),
      "n1  a0 192.168.100.1 ══ A ══ switch\n"
      "n2  a0 192.168.100.2 ══ A ══ switch\n"
      "n3  a0 192.168.100.3 ══ A ══ switch\n");
}

TEST(Pictures, RatesAreCountedInIntervalsAndAddUpToTheAnswer) {
  AnswerCourse course{.tokens = 40, .event_seconds = 1.0, .event = "rank killed"};
  // Ten tokens a second, then a second of silence, then ten a second again; four letters a token.
  for (int i = 1; i <= 40; ++i) {
    course.progress.push_back({.seconds = (i <= 20 ? i : i + 10) * 0.1, .length = static_cast<std::size_t>(4 * i)});
  }
  const report::LineChart chart = rate_chart(course);
  ASSERT_EQ(chart.series.size(), 2U);
  const double interval = chart.series[0].points[1].x - chart.series[0].points[0].x;
  double tokens = 0;
  bool silent = false;
  for (const report::ChartPoint& point : chart.series[0].points) {
    tokens += point.y * interval;
    silent |= point.y == 0;
  }
  EXPECT_NEAR(tokens, 40, 1e-9);
  EXPECT_TRUE(silent) << "the pause is seen";
  EXPECT_EQ(chart.series[1].name, "rank killed");
  EXPECT_EQ(chart.series[1].points[0].x, 1.0);
  EXPECT_EQ(chart.series[1].points[1].x, 1.0);
}

TEST(Pictures, AnAnswerThatNeverCameHasAnEmptyChart) {
  EXPECT_TRUE(rate_chart({}).series[0].points.empty());
  EXPECT_EQ(rate_chart({.progress = {{.seconds = 0, .length = 8}}, .tokens = 2, .event_seconds = 0, .event = "cut"})
                .series[0]
                .points.size(),
            1U);
}

}  // namespace
}  // namespace yoke::gameday
