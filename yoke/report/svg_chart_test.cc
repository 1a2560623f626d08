#include "yoke/report/svg_chart.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "yoke/report/values_testing.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::report {
namespace {

LineChart bandwidth() {
  return {.title = "All-reduce",
          .x = {.label = "size", .scale = AxisScale::kLog2, .format = [](double v) { return fmt::format("{} B", v); }},
          .y = {.label = "GB/s"},
          .series = {{.name = "direct", .points = {{8, 1, 0.5, 1.5}, {16, 2, 1.5, 2.5}, {32, 4, 3, 5}}},
                     {.name = "other", .points = {{8, 0.5}, {16, 1.5}, {32, 2.5}}}},
          .references = {{.value = 6, .label = "ceiling"}}};
}

BarChart tokens() {
  return {.title = "Tokens",
          .value = {.label = "tokens/s"},
          .categories = {"8B", "70B"},
          .series = {{"yoke", {40, 5}}, {"other", {38, -4}}},
          .references = {{.value = 45, .label = "plan"}}};
}

std::size_t count(const std::string& text, std::string_view piece) {
  std::size_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}

TEST(SvgChart, IsWellFormedAndNamedForThoseWhoDoNotSeeIt) {
  for (const std::string& svg : {render_svg(bandwidth()), render_svg(tokens())}) {
    EXPECT_EQ(find_xml_error(svg), std::nullopt) << svg;
    EXPECT_EQ(count(svg, "role=\"img\""), 1U);
  }
  EXPECT_EQ(count(render_svg(bandwidth()), "\n<title>All-reduce</title>"), 1U);
}

TEST(SvgChart, DrawsOneLinePerSeriesAndOneMarkPerPoint) {
  const std::string svg = render_svg(bandwidth());
  EXPECT_EQ(count(svg, "<polyline"), 2U + 2U);  // with the samples of the legend
  EXPECT_EQ(count(svg, "</path>"), 6U);
  EXPECT_EQ(count(svg, "<title>direct: 16 B, 2 (1.5 to 2.5)</title>"), 1U);
}

TEST(SvgChart, LabelsTicksAxesLegendAndReference) {
  const std::string svg = render_svg(bandwidth());
  for (const char* label : {">8 B<", ">16 B<", ">32 B<", ">size<", ">GB/s<", ">direct<", ">other<", ">ceiling: 6<"}) {
    EXPECT_EQ(count(svg, label), 1U) << label;
  }
}

TEST(SvgChart, ShowsTheSpreadAsBarsOrAsABand) {
  LineChart chart = bandwidth();
  EXPECT_EQ(count(render_svg(chart), "<polygon"), 0U);
  EXPECT_EQ(count(render_svg(chart), "m-4 0h8\""), 3U);
  chart.spread = SpreadStyle::kBand;
  EXPECT_EQ(count(render_svg(chart), "<polygon"), 1U);
  EXPECT_EQ(count(render_svg(chart), "m-4 0h8\""), 0U);
}

TEST(SvgChart, BreaksTheLineAtAPointThatIsLeftOutAndSaysSo) {
  LineChart chart{.series = {{.points = {{1, 1}, {2, 1}, {3, kNan}, {4, 1}, {5, 1}}}}};
  const std::string svg = render_svg(chart);
  EXPECT_EQ(count(svg, "<polyline"), 2U);
  EXPECT_EQ(count(svg, ">1 of 5 points not shown: 1 not finite<"), 1U);
}

TEST(SvgChart, LeavesOutTheMarksOfACrowdedLine) {
  LineChart chart{.series = {{}}};
  for (int i = 0; i < 61; ++i) chart.series[0].points.push_back({.x = 1.0 * i, .y = 1});
  EXPECT_EQ(count(render_svg(chart), "</path>"), 0U);
  chart.series[0].style = SeriesStyle::kScatter;
  EXPECT_EQ(count(render_svg(chart), "</path>"), 61U);
}

TEST(SvgChart, DrawsOneBarPerValueWithItsNumber) {
  const std::string svg = render_svg(tokens());
  EXPECT_EQ(count(svg, "</rect>"), 4U + 2U);  // with the samples of the legend
  for (const char* label : {">38<", ">-4<", ">8B<", ">70B<", ">tokens/s<", ">plan: 45<"}) {
    EXPECT_EQ(count(svg, label), 1U) << label;
  }
}

TEST(SvgChart, CarriesItsStyleAndGroundOnlyOnItsOwn) {
  const std::string alone = render_svg(bandwidth());
  EXPECT_EQ(count(alone, "<style>"), 1U);
  EXPECT_EQ(count(alone, "class=\"paper\""), 1U);
  EXPECT_EQ(count(alone, "prefers-color-scheme"), 0U);  // it stands on its own white ground
  const std::string embedded = render_svg(bandwidth(), {.use = SvgUse::kEmbedded});
  EXPECT_EQ(count(embedded, "<style>"), 0U);
  EXPECT_EQ(count(embedded, "class=\"paper\""), 0U);
  EXPECT_EQ(count(chart_style(SvgUse::kEmbedded), "prefers-color-scheme:dark"), 1U);
}

TEST(SvgChart, ReportsWhenThereIsNothingToShow) {
  EXPECT_EQ(count(render_svg(LineChart{}), ">there are no points to show<"), 1U);
  EXPECT_EQ(count(render_svg(BarChart{}), ">there are no bars to show<"), 1U);
}

// The y of each text of a class, from the elements as SvgWriter writes them.
std::vector<double> heights_of(const std::string& svg, std::string_view element_begin, std::string_view attribute) {
  std::vector<double> heights;
  for (std::size_t at = svg.find(element_begin); at != std::string::npos; at = svg.find(element_begin, at + 1)) {
    heights.push_back(std::stod(svg.substr(svg.find(attribute, at) + attribute.size())));
  }
  return heights;
}

TEST(SvgChart, KeepsReferenceLabelsOffEachOtherAndOffTheLines) {
  LineChart chart = bandwidth();
  chart.references = {{24.5, "ceiling"}, {23.9, "plan"}, {24.1, "last week"}, {1, "floor"}};
  const std::string svg = render_svg(chart);
  const auto labels = heights_of(svg, "<text class=\"halo\"", " y=\"");
  const auto lines = heights_of(svg, "<line class=\"reference\"", " y1=\"");
  ASSERT_EQ(labels.size(), 4U);
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (const double line : lines) EXPECT_TRUE(line < labels[i] - 11 || line > labels[i]) << labels[i] << " " << line;
    for (std::size_t j = 0; j < i; ++j) EXPECT_GE(std::abs(labels[i] - labels[j]), 12);
  }
}

rc::Gen<std::string> hostile_text() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(hostile_pieces())),
                      [](const std::vector<std::string>& parts) {
                        std::string text;
                        for (const std::string& part : parts) text += part;
                        return text;
                      });
}

ChartAxis random_axis() {
  const std::string unit = *hostile_text();
  return {.label = *hostile_text(),
          .scale = *rc::gen::element(AxisScale::kLinear, AxisScale::kLog2, AxisScale::kLog10),
          .format = [unit](double v) { return fmt::format("{:.3g}", v) + unit; }};
}

// Ordinary numbers and those that trip charts up.
rc::Gen<double> hostile_number() {
  return rc::gen::oneOf(rc::gen::arbitrary<double>(),
                        rc::gen::element(0.0, -0.0, 1.0, -1.0, kNan, kInfinity, -kInfinity, 1e308, -1e308, 1e290,
                                         -1e290, 5e-324, 1e-290));
}

RC_GTEST_PROP(SvgChartProperty, LineChartsAreWellFormedAndFiniteForAnyTextAndNumber, ()) {
  LineChart chart{.title = *hostile_text(), .x = random_axis(), .y = random_axis()};
  chart.spread = *rc::gen::element(SpreadStyle::kBars, SpreadStyle::kBand);
  chart.references = {{*hostile_number(), *hostile_text()}, {*hostile_number(), *hostile_text()}};
  const auto series = *rc::gen::inRange(0, 9);
  for (int s = 0; s < series; ++s) {
    auto& points = chart.series.emplace_back(ChartSeries{.name = *hostile_text()}).points;
    const auto size = *rc::gen::inRange(0, 5);
    for (int i = 0; i < size; ++i) {
      points.push_back({*hostile_number(), *hostile_number(), *hostile_number(), *hostile_number()});
    }
  }
  const std::string svg = render_svg(chart, {.width = 1.0 * *rc::gen::inRange(1, 1000)});
  RC_ASSERT(find_xml_error(svg) == std::nullopt);
  for (const char* bad : {"=\"nan", "=\"inf", "=\"-nan", "=\"-inf", ",nan", ",inf", ",-nan", ",-inf", "Mnan", "Minf"}) {
    RC_ASSERT(count(svg, bad) == 0U);
  }
}

RC_GTEST_PROP(SvgChartProperty, BarChartsAreWellFormedForAnyTextAndNumber, ()) {
  BarChart chart{.title = *hostile_text(), .value = random_axis()};
  chart.references = {{*hostile_number(), *hostile_text()}};
  chart.categories = {*hostile_text(), *hostile_text()};
  const auto series = *rc::gen::inRange(0, 9);
  for (int s = 0; s < series; ++s) {
    chart.series.push_back({.name = *hostile_text(), .values = {*hostile_number(), *hostile_number()}});
  }
  const std::string svg = render_svg(chart);
  RC_ASSERT(find_xml_error(svg) == std::nullopt);
  for (const char* bad : {"=\"nan", "=\"inf", "=\"-nan", "=\"-inf", "width=\"-"}) RC_ASSERT(count(svg, bad) == 0U);
}

}  // namespace
}  // namespace yoke::report
