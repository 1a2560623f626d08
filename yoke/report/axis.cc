#include "yoke/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "yoke/base/check.h"

namespace yoke::report {
namespace {

constexpr double kLargest = 1e290;
constexpr double kSmallest = 1e-290;
constexpr double kSlack = 1e-9;  // of a step: 0.3 / 0.1 is not 3 in binary
constexpr std::array kRoundDigits = {1.0, 2.0, 5.0, 10.0};

double power_of_ten(double exponent) { return std::pow(10.0, exponent); }

// The smallest of 1, 2, 5 times a power of ten that is not below x > 0; and the largest that is not above.
double round_up(double x) {
  const double unit = power_of_ten(std::floor(std::log10(x)));
  for (const double digit : kRoundDigits) {
    if (x <= digit * unit * (1 + kSlack)) return digit * unit;
  }
  return 10 * unit;
}

double round_down(double x) {
  const double unit = power_of_ten(std::floor(std::log10(x)));
  for (std::size_t i = kRoundDigits.size(); i-- > 0;) {
    if (x >= kRoundDigits[i] * unit * (1 - kSlack)) return kRoundDigits[i] * unit;
  }
  return unit;
}

AxisRange fit_linear(double low, double high) {
  if (low > 0 && low <= high / 2) low = 0;
  if (high < 0 && high >= low / 2) high = 0;
  const double magnitude = std::max(std::abs(low), std::abs(high));
  if (magnitude < kSmallest) return {.scale = AxisScale::kLinear, .low = 0, .high = 1};
  if (high - low < magnitude * kSlack) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double step = round_up((high - low) / 5);
  return {.scale = AxisScale::kLinear,
          .low = std::floor(low / step + kSlack) * step,
          .high = std::ceil(high / step - kSlack) * step};
}

AxisRange fit_log2(double low, double high) {
  double first = std::floor(std::log2(low) + kSlack);
  double last = std::ceil(std::log2(high) - kSlack);
  if (first >= last) {
    --first;
    ++last;
  }
  return {.scale = AxisScale::kLog2, .low = std::exp2(first), .high = std::exp2(last)};
}

AxisRange fit_log10(double low, double high) {
  AxisRange range{.scale = AxisScale::kLog10, .low = round_down(low), .high = round_up(high)};
  if (range.low >= range.high) {
    range.low = round_down(low / 2);
    range.high = round_up(high * 2);
  }
  return range;
}

// "0.25" where the step is 0.05, "250" where it is 50: just the digits in which neighbouring ticks differ.
std::string format_step(double value, double step, double magnitude) {
  const double last_digit = std::floor(std::log10(step) + kSlack);
  if (magnitude < 1e6 && last_digit >= -4) {
    return fmt::format("{:.{}f}", value, std::max(0, static_cast<int>(-last_digit)));
  }
  return fmt::format("{:.{}g}", value, std::clamp(static_cast<int>(std::log10(magnitude) - last_digit) + 1, 1, 17));
}

std::vector<AxisTick> linear_ticks(const ChartAxis& axis, const AxisRange& range, std::size_t most) {
  const double step = round_up((range.high - range.low) / static_cast<double>(most - 1));
  const double magnitude = std::max(std::abs(range.low), std::abs(range.high));
  const auto first = std::llround(std::ceil(range.low / step - kSlack));
  const auto last = std::llround(std::floor(range.high / step + kSlack));
  std::vector<AxisTick> ticks;
  for (auto i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    ticks.push_back({.value = value, .label = axis.format ? axis.format(value) : format_step(value, step, magnitude)});
  }
  return ticks;
}

// Every power of the base, or every second, third … so that there are few enough, counted from the first power. The
// next wider stride is taken where it meets the last power too: then both ends of the axis have their number.
std::vector<double> powers_within(const AxisRange& range, double base, std::size_t most) {
  const auto first = std::lround(std::ceil(std::log2(range.low) / std::log2(base) - kSlack));
  const auto last = std::lround(std::floor(std::log2(range.high) / std::log2(base) + kSlack));
  long stride = 1;
  while ((last - first) / stride + 1 > static_cast<long>(most)) ++stride;
  if ((last - first) % stride != 0 && (last - first) % (stride + 1) == 0) ++stride;
  std::vector<double> values;
  for (long exponent = first; exponent <= last; exponent += stride) {
    values.push_back(std::pow(base, static_cast<double>(exponent)));
  }
  return values;
}

// 1, 2, 5, 10, 20 … for ranges of few decades, where the powers alone would be too sparse.
std::vector<double> round_values_within(const AxisRange& range) {
  std::vector<double> values;
  for (double exponent = std::floor(std::log10(range.low) - kSlack); power_of_ten(exponent) <= range.high; ++exponent) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * power_of_ten(exponent);
      if (value >= range.low * (1 - kSlack) && value <= range.high * (1 + kSlack)) values.push_back(value);
    }
  }
  return values;
}

std::vector<double> log_tick_values(const AxisRange& range, std::size_t most) {
  if (range.scale == AxisScale::kLog2) return powers_within(range, 2, most);
  if (std::log10(range.high) - std::log10(range.low) <= 4) {
    std::vector<double> values = round_values_within(range);
    if (values.size() <= most) return values;
  }
  return powers_within(range, 10, most);
}

bool labels_have_room(const std::vector<AxisTick>& ticks, const AxisRange& range, double length,
                      const std::function<double(std::string_view)>& extent) {
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const double distance = (range.place(ticks[i].value) - range.place(ticks[i - 1].value)) * length;
    if (distance < (extent(ticks[i].label) + extent(ticks[i - 1].label)) / 2) return false;
  }
  return true;
}

}  // namespace

std::optional<Unplaceable> why_unplaceable(AxisScale scale, double value) {
  if (!std::isfinite(value)) return Unplaceable::kNotFinite;
  if (std::abs(value) > kLargest) return Unplaceable::kOutOfReach;
  if (scale == AxisScale::kLinear) return std::nullopt;
  if (value <= 0) return Unplaceable::kNotPositive;
  if (value < kSmallest) return Unplaceable::kOutOfReach;
  return std::nullopt;
}

double AxisRange::place(double value) const {
  if (scale == AxisScale::kLinear) return (value - low) / (high - low);
  return (std::log2(value) - std::log2(low)) / (std::log2(high) - std::log2(low));
}

AxisRange fit_axis(const ChartAxis& axis, std::span<const double> values) {
  std::vector<double> placeable;
  const auto take = [&](double value) {
    if (!why_unplaceable(axis.scale, value)) placeable.push_back(value);
  };
  for (const double value : values) take(value);
  for (const double value : axis.include) take(value);
  if (placeable.empty()) return {.scale = axis.scale, .low = axis.scale == AxisScale::kLinear ? 0.0 : 1.0, .high = 10};
  const auto [low, high] = std::minmax_element(placeable.begin(), placeable.end());
  switch (axis.scale) {
    case AxisScale::kLinear:
      return fit_linear(*low, *high);
    case AxisScale::kLog2:
      return fit_log2(*low, *high);
    case AxisScale::kLog10:
      return fit_log10(*low, *high);
  }
  YOKE_CHECK(false, "scale {}", static_cast<int>(axis.scale));
  return {};
}

std::vector<AxisTick> choose_ticks(const ChartAxis& axis, const AxisRange& range, std::size_t most) {
  YOKE_CHECK_GE(most, 2U);
  std::vector<AxisTick> ticks;
  const auto add = [&](double value) { ticks.push_back({.value = value, .label = format_value(axis, value)}); };
  if (range.scale == AxisScale::kLinear) {
    ticks = linear_ticks(axis, range, most);
  } else {
    for (const double value : log_tick_values(range, most)) add(value);
  }
  if (ticks.size() >= 2) return ticks;
  // One number alone tells no scale: the ends of the range do.
  ticks.clear();
  add(range.low);
  add(range.high);
  return ticks;
}

std::vector<AxisTick> choose_ticks_that_fit(const ChartAxis& axis, const AxisRange& range, double length,
                                            const std::function<double(std::string_view)>& extent) {
  constexpr std::size_t kMax = 12;
  std::vector<AxisTick> ticks;
  for (std::size_t most = kMax; most >= 2; --most) {
    ticks = choose_ticks(axis, range, most);
    if (labels_have_room(ticks, range, length, extent)) return ticks;
  }
  ticks.resize(1);
  return ticks;
}

std::string format_value(const ChartAxis& axis, double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  return axis.format ? axis.format(value) : fmt::format("{:.6g}", value);
}

}  // namespace yoke::report
