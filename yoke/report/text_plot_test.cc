#include "yoke/report/text_plot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "yoke/base/text.h"
#include "yoke/report/values_testing.h"

namespace yoke::report {
namespace {

constexpr TextPlotOptions kSmall{.width = 24, .height = 5};

// The drawing with a plain character for each that is not, so that a picture fits into a string.
std::string plain(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
      {"●", "*"}, {"○", "o"}, {"·", "."}, {"┄", "-"}, {"※", "%"}, {"│", "|"}, {"└", "+"}, {"─", "-"}, {"┴", "+"}};
  for (const auto& [drawn, character] : kPlain) {
    for (std::size_t at = 0; (at = text.find(drawn)) != std::string::npos;) text.replace(at, drawn.size(), character);
  }
  return text;
}

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

TEST(TextPlot, DrawsMarksTracesTicksAndLabels) {
  const LineChart chart{.title = "Speed",
                        .x = {.label = "nodes"},
                        .y = {.label = "tokens/s"},
                        .series = {{.points = {{.x = 0, .y = 0}, {.x = 10, .y = 10}}}}};
  EXPECT_EQ(plain(render_text(chart, kSmall)),
            "Speed\n"
            "tokens/s\n"
            "10 |                 ..*\n"
            "   |            .....\n"
            " 5 |        ....\n"
            "   |   .....\n"
            " 0 |*..\n"
            "   ++---+---+--+---+---+\n"
            "    0   2   4  6   8  10\n"
            "           nodes\n");
}

TEST(TextPlot, TellsSeriesApartAndListsThemInTheLegend) {
  const LineChart chart{.series = {{.name = "one", .points = {{.x = 1, .y = 1}, {.x = 5, .y = 5}}},
                                   {.name = "two", .points = {{.x = 1, .y = 5}, {.x = 5, .y = 5}}}}};
  const std::string text = plain(render_text(chart, {.width = 40}));
  EXPECT_NE(text.find("\n* one\no two\n% several series at one place\n"), std::string::npos) << text;
}

TEST(TextPlot, JoinsNothingInAScatterPlot) {
  LineChart chart{.series = {{.points = {{.x = 0, .y = 0}, {.x = 10, .y = 10}}, .style = SeriesStyle::kScatter}}};
  EXPECT_EQ(count(plain(render_text(chart, kSmall)), '.'), 0U);
  chart.series[0].style = SeriesStyle::kLine;
  EXPECT_GT(count(plain(render_text(chart, kSmall)), '.'), 0U);
}

TEST(TextPlot, DrawsTheReferenceLineAndItsValue) {
  const LineChart chart{.series = {{.points = {{.x = 1, .y = 2}}}}, .references = {{.value = 4, .label = "ceiling"}}};
  const std::string text = plain(render_text(chart, kSmall));
  EXPECT_NE(text.find("|--------------------"), std::string::npos) << text;
  EXPECT_NE(text.find("\n- ceiling: 4\n"), std::string::npos) << text;
}

TEST(TextPlot, ReportsWhenThereIsNothingToShow) {
  EXPECT_NE(render_text(LineChart{}).find("there are no points to show\n"), std::string::npos);
  EXPECT_NE(render_text(LineChart{.series = {{.name = "a"}}}).find("there are no points to show\n"), std::string::npos);
}

TEST(TextPlot, ShowsOnePointAndEqualValues) {
  EXPECT_EQ(count(plain(render_text(LineChart{.series = {{.points = {{.x = 3, .y = 7}}}}}, kSmall)), '*'), 1U);
  const LineChart flat{.series = {{.points = {{.x = 1, .y = 5}, {.x = 2, .y = 5}, {.x = 4, .y = 5}}}}};
  EXPECT_EQ(count(plain(render_text(flat, kSmall)), '*'), 3U);
}

TEST(TextPlot, SkipsWhatIsNotFiniteAndSaysSo) {
  const LineChart chart{.series = {{.points = {{.x = 1, .y = kNan}, {.x = kInfinity, .y = 1}, {.x = 1, .y = 1}}}}};
  const std::string text = plain(render_text(chart));
  EXPECT_EQ(count(text, '*'), 1U);
  EXPECT_NE(text.find("2 of 3 points not shown: 2 not finite\n"), std::string::npos) << text;
}

TEST(TextPlot, SkipsWhatALogarithmicAxisCannotShowAndSaysSo) {
  const LineChart chart{.x = {.scale = AxisScale::kLog2},
                        .y = {.scale = AxisScale::kLog10},
                        .series = {{.points = {{.x = 0, .y = 1}, {.x = 1, .y = -1}, {.x = 2, .y = 1}}}}};
  const std::string text = plain(render_text(chart));
  EXPECT_EQ(count(text, '*'), 1U);
  EXPECT_NE(text.find("2 of 3 points not shown: 2 not positive on a logarithmic axis\n"), std::string::npos) << text;
}

TEST(TextPlot, DrawsNoLineAcrossAPointThatIsLeftOut) {
  const LineChart chart{.series = {{.points = {{.x = 0, .y = 10}, {.x = 5, .y = kNan}, {.x = 10, .y = 10}}}}};
  EXPECT_EQ(count(plain(render_text(chart, kSmall)), '.'), 0U);
}

TEST(TextPlot, KeepsTheLastTickLabelWhenItIsPushedIn) {
  const ChartAxis axis{.format = [](double v) { return fmt::format("{} metres", v); }};
  const LineChart chart{.x = axis, .series = {{.points = {{.x = 0, .y = 0}, {.x = 10, .y = 1}}}}};
  EXPECT_NE(plain(render_text(chart, {.width = 40})).find("10 metres\n"), std::string::npos);
}

RC_GTEST_PROP(TextPlotProperty, NoLineExceedsTheWidth, ()) {
  LineChart chart{.title = "a title of some words", .x = {.label = "x axis"}, .y = {.label = "y axis"}};
  chart.x.scale = *rc::gen::element(AxisScale::kLinear, AxisScale::kLog2, AxisScale::kLog10);
  chart.y.scale = *rc::gen::element(AxisScale::kLinear, AxisScale::kLog2, AxisScale::kLog10);
  const auto points = *rc::gen::arbitrary<std::vector<std::pair<double, double>>>();
  chart.series.emplace_back();
  for (const auto& [x, y] : points) chart.series[0].points.push_back({.x = x, .y = y});
  const auto width = *rc::gen::inRange<std::size_t>(40, 120);
  for (const std::string& line : split(render_text(chart, {.width = width}), '\n')) {
    RC_ASSERT(count_columns(line) <= width);
  }
}

}  // namespace
}  // namespace yoke::report
