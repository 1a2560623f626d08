#include "yoke/report/chart.h"

#include <gtest/gtest.h>

#include "yoke/report/values_testing.h"

namespace yoke::report {
namespace {

using Notes = std::vector<std::string>;

TEST(ChartLayout, CoversSpreadsAndReferencesToo) {
  const LineChart chart{.series = {{.points = {{.x = 1, .y = 5, .y_low = -3, .y_high = 12}}}},
                        .references = {{.value = 31, .label = "ceiling"}}};
  const LineLayout layout = lay_out(chart);
  EXPECT_LE(layout.y.low, -3);
  EXPECT_GE(layout.y.high, 31);
}

TEST(ChartLayout, DropsTheEndOfASpreadThatCannotBeDrawnAndKeepsThePoint) {
  const LineChart chart{.y = {.scale = AxisScale::kLog10},
                        .series = {{.points = {{.x = 1, .y = 5, .y_low = -3, .y_high = 12}}}}};
  const LineLayout layout = lay_out(chart);
  ASSERT_EQ(layout.runs[0].size(), 1U);
  EXPECT_EQ(layout.runs[0][0][0].y_low, std::nullopt);
  EXPECT_EQ(layout.runs[0][0][0].y_high, 12);
  EXPECT_EQ(layout.notes, (Notes{"1 of 2 ends of spreads not shown: 1 not positive on a logarithmic axis"}));
}

TEST(ChartLayout, SplitsASeriesIntoRunsAtWhatIsLeftOut) {
  const LineChart chart{.series = {{.points = {{1, kNan}, {2, 1}, {3, 1}, {4, kNan}, {5, kNan}, {6, 1}, {7, 1e300}}}}};
  const LineLayout layout = lay_out(chart);
  ASSERT_EQ(layout.runs[0].size(), 2U);
  EXPECT_EQ(layout.runs[0][0].size(), 2U);
  EXPECT_EQ(layout.runs[0][1].size(), 1U);
  EXPECT_EQ(layout.notes, (Notes{"4 of 7 points not shown: 3 not finite, 1 too large or too small to draw"}));
}

TEST(ChartLayout, LeavesOutAReferenceThatCannotBeDrawnAndSaysSo) {
  const BarChart chart{.categories = {"a"}, .series = {{.values = {1}}}, .references = {{kNan, "x"}, {2, "y"}}};
  const BarLayout layout = lay_out(chart);
  ASSERT_EQ(layout.references.size(), 1U);
  EXPECT_EQ(layout.references[0].label, "y");
  EXPECT_EQ(layout.notes, (Notes{"1 of 2 reference lines not shown: 1 not finite"}));
}

TEST(ChartLayout, StartsBarsAtZeroOrAtTheLowEndOfALogarithmicAxis) {
  BarChart chart{.categories = {"a", "b"}, .series = {{.values = {98, 99}}}};
  EXPECT_EQ(lay_out(chart).base, 0);
  EXPECT_EQ(lay_out(chart).value.low, 0);
  chart.value.scale = AxisScale::kLog2;
  EXPECT_EQ(lay_out(chart).base, 64);
}

}  // namespace
}  // namespace yoke::report
