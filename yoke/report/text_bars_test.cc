#include "yoke/report/text_bars.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/text.h"
#include "yoke/report/values_testing.h"

namespace yoke {
namespace {

constexpr TextPlotOptions kAscii{.width = 30, .glyphs = PlotGlyphs::kAscii};

TEST(TextBars, ScalesBarsToTheWidth) {
  const BarChart chart{.title = "Rates", .categories = {"one", "three"}, .series = {{.values = {5, 10}}}};
  EXPECT_EQ(render_text(chart, kAscii),
            "Rates\n"
            "one     5  ##########\n"
            "three  10  ###################\n");
}

TEST(TextBars, DrawEighthsOfACellInUtf8) {
  const BarChart chart{.categories = {"a", "b"}, .series = {{.values = {10, 1.5}}}};
  EXPECT_EQ(render_text(chart, {.width = 18}), "a   10  ██████████\nb  1.5  █▌\n");
}

TEST(TextBars, GroupSeriesUnderTheirCategory) {
  const BarChart chart{.categories = {"8B"}, .series = {{"yoke", {4}}, {"other", {2}}}};
  EXPECT_EQ(render_text(chart, kAscii), "8B  yoke   4  ################\n    other  2  ########\n");
}

TEST(TextBars, GoLeftForNegativeValues) {
  const BarChart chart{.categories = {"a", "b"}, .series = {{.values = {10, -10}}}};
  EXPECT_EQ(render_text(chart, kAscii), "a   10             ###########\nb  -10  ###########\n");
}

TEST(TextBars, MarkTheReferenceWhereNoBarCoversIt) {
  const BarChart chart{.value = {.label = "GB/s"},
                       .categories = {"a", "b"},
                       .series = {{.values = {10, 4}}},
                       .references = {{.value = 8, .label = "plan"}}};
  EXPECT_EQ(render_text(chart, kAscii),
            "a  10  #######################\nb   4  #########         |\n\nGB/s\n| plan: 8\n");
}

TEST(TextBars, SkipWhatCannotBeDrawnAndSaySo) {
  const BarChart chart{.categories = {"a", "b"}, .series = {{.values = {kNan, 2}}}};
  EXPECT_EQ(render_text(chart, kAscii),
            "a  nan\nb    2  ######################\n\n1 of 2 bars not shown: 1 not\nfinite\n");
  const BarChart log{.value = {.scale = AxisScale::kLog10}, .categories = {"a", "b"}, .series = {{.values = {0, 2}}}};
  EXPECT_NE(render_text(log).find("1 not positive on a logarithmic axis"), std::string::npos);
}

TEST(TextBars, CopeWithNothingAndWithZeros) {
  EXPECT_EQ(render_text(BarChart{}), "there are no bars to show\n");
  EXPECT_EQ(render_text(BarChart{.categories = {"a"}, .series = {{.values = {0}}}}, kAscii), "a  0\n");
}

TEST(TextBarsDeathTest, SeriesThatMissesACategoryIsABug) {
  EXPECT_DEATH(render_text(BarChart{.categories = {"a", "b"}, .series = {{.values = {1}}}}), "1 against 2");
}

RC_GTEST_PROP(TextBarsProperty, NoLineExceedsTheWidthHoweverLongTheNames, ()) {
  BarChart chart{.series = {{.name = "s"}}};
  chart.categories = *rc::gen::container<std::vector<std::string>>(
      rc::gen::map(rc::gen::inRange<std::size_t>(0, 100), [](std::size_t size) { return std::string(size, 'n'); }));
  for (std::size_t i = 0; i < chart.categories.size(); ++i) {
    chart.series[0].values.push_back(*rc::gen::inRange(-1000, 1000));
  }
  const auto width = *rc::gen::inRange<std::size_t>(30, 120);
  const auto glyphs = *rc::gen::element(PlotGlyphs::kAscii, PlotGlyphs::kUtf8);
  for (const std::string& line : split(render_text(chart, {.width = width, .glyphs = glyphs}), '\n')) {
    RC_ASSERT(count_columns(line) <= width);
  }
}

}  // namespace
}  // namespace yoke
