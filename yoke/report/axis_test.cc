#include "yoke/report/axis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "yoke/report/values_testing.h"

namespace yoke::report {
namespace {

std::vector<std::string> labels(const ChartAxis& axis, std::vector<double> values, std::size_t most = 6) {
  std::vector<std::string> texts;
  for (const AxisTick& tick : choose_ticks(axis, fit_axis(axis, values), most)) texts.push_back(tick.label);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Axis, LinearTicksAreRoundAndShowOnlyTheDigitsThatDiffer) {
  EXPECT_EQ(labels({}, {1, 23.7}), (Texts{"0", "5", "10", "15", "20", "25"}));
  EXPECT_EQ(labels({}, {0.1, 0.3}), (Texts{"0.0", "0.1", "0.2", "0.3"}));
  EXPECT_EQ(labels({}, {-1, 1}, 5), (Texts{"-1.0", "-0.5", "0.0", "0.5", "1.0"}));
}

TEST(Axis, StaysAwayFromZeroWhereTheValuesAreCloseTogether) {
  const AxisRange range = fit_axis({}, std::vector<double>{98, 99});
  EXPECT_GE(range.low, 97.5);
  EXPECT_LE(range.high, 99.5);
}

TEST(Axis, Log2TicksArePowersOfTwoAtEqualDistance) {
  const ChartAxis axis{.scale = AxisScale::kLog2};
  EXPECT_EQ(labels(axis, {8, 128}), (Texts{"8", "16", "32", "64", "128"}));
  EXPECT_EQ(labels(axis, {8, 134217728}, 5), (Texts{"8", "512", "32768", "2.09715e+06", "1.34218e+08"}));
}

TEST(Axis, Log10TicksAreOneTwoFiveOrWholePowers) {
  const ChartAxis axis{.scale = AxisScale::kLog10};
  EXPECT_EQ(labels(axis, {9, 11}), (Texts{"5", "10", "20"}));
  EXPECT_EQ(labels(axis, {0.001, 1000}, 7), (Texts{"0.001", "0.01", "0.1", "1", "10", "100", "1000"}));
}

TEST(Axis, UsesTheFormatterOfTheCaller) {
  const ChartAxis axis{.scale = AxisScale::kLog2, .format = [](double v) { return fmt::format("{} B", v); }};
  EXPECT_EQ(labels(axis, {1, 4}), (Texts{"1 B", "2 B", "4 B"}));
}

TEST(Axis, CoversWhatMustBeIncluded) {
  const AxisRange range = fit_axis({.include = {0, 200}}, std::vector<double>{98, 99});
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 200);
}

TEST(Axis, HasARangeForNoValueAndForOneValue) {
  for (const AxisScale scale : {AxisScale::kLinear, AxisScale::kLog2, AxisScale::kLog10}) {
    const ChartAxis axis{.scale = scale};
    for (const std::vector<double>& values :
         {std::vector<double>{}, {7}, {1}, {0}, {-3}, {kNan, kInfinity}, {1e-320}, {1e308}, {1e290, -1e290}}) {
      const AxisRange range = fit_axis(axis, values);
      EXPECT_LT(range.low, range.high);
      EXPECT_GE(choose_ticks(axis, range, 2).size(), 2U);
    }
  }
}

TEST(Axis, ReportsWhyAValueCannotBePlaced) {
  EXPECT_EQ(why_unplaceable(AxisScale::kLinear, kNan), Unplaceable::kNotFinite);
  EXPECT_EQ(why_unplaceable(AxisScale::kLinear, -kInfinity), Unplaceable::kNotFinite);
  EXPECT_EQ(why_unplaceable(AxisScale::kLinear, 1e300), Unplaceable::kOutOfReach);
  EXPECT_EQ(why_unplaceable(AxisScale::kLinear, 0), std::nullopt);
  EXPECT_EQ(why_unplaceable(AxisScale::kLog2, 0), Unplaceable::kNotPositive);
  EXPECT_EQ(why_unplaceable(AxisScale::kLog10, -1), Unplaceable::kNotPositive);
  EXPECT_EQ(why_unplaceable(AxisScale::kLog10, 1e-300), Unplaceable::kOutOfReach);
}

TEST(Axis, GivesUpTicksUntilTheirLabelsHaveRoom) {
  const ChartAxis axis;
  const AxisRange range = fit_axis(axis, std::vector<double>{0, 10});
  const auto ticks = choose_ticks_that_fit(axis, range, 30, [](std::string_view) { return 12.0; });
  ASSERT_EQ(ticks.size(), 3U);
  EXPECT_EQ(ticks[1].label, "5");
  EXPECT_EQ(choose_ticks_that_fit(axis, range, 1, [](std::string_view) { return 12.0; }).size(), 1U);
}

RC_GTEST_PROP(AxisProperty, EveryPlaceableValueLiesWithinTheRangeAndTicksRise, ()) {
  const ChartAxis axis{.scale = *rc::gen::element(AxisScale::kLinear, AxisScale::kLog2, AxisScale::kLog10)};
  const auto values = *rc::gen::container<std::vector<double>>(
      rc::gen::apply([](int mantissa, int exponent) { return mantissa * std::pow(10.0, exponent); },
                     rc::gen::inRange(-1000, 1000), rc::gen::inRange(-320, 320)));
  const auto most = *rc::gen::inRange<std::size_t>(2, 13);
  const AxisRange range = fit_axis(axis, values);
  RC_ASSERT(std::isfinite(range.low) && std::isfinite(range.high) && range.low < range.high);
  for (const double value : values) {
    if (why_unplaceable(axis.scale, value)) continue;
    RC_ASSERT(range.place(value) >= -1e-6);
    RC_ASSERT(range.place(value) <= 1 + 1e-6);
  }
  const auto ticks = choose_ticks(axis, range, most);
  RC_ASSERT(ticks.size() >= 2U);
  RC_ASSERT(ticks.size() <= most);
  for (std::size_t i = 1; i < ticks.size(); ++i) RC_ASSERT(ticks[i].value > ticks[i - 1].value);
  RC_ASSERT(range.place(ticks.front().value) >= -1e-6);
  RC_ASSERT(range.place(ticks.back().value) <= 1 + 1e-6);
}

}  // namespace
}  // namespace yoke::report
