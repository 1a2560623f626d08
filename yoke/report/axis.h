// An axis of a chart: what part of the numbers it covers, where a value lies on it, and which ticks it gets. Shared by
// the plots of the terminal and the SVG charts, so that both show the same axis.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::report {

enum class AxisScale { kLinear, kLog2, kLog10 };  // kLog2 suits sizes: 8 B, 16 B, …, 128 MiB

struct ChartAxis {
  std::string label{};
  AxisScale scale = AxisScale::kLinear;
  std::function<std::string(double)> format{};  // of ticks and values; empty: plain numbers
  std::vector<double> include{};                // values to be covered besides the data, such as 0
};

// Why a value cannot be drawn on an axis.
enum class Unplaceable { kNotFinite, kNotPositive, kOutOfReach };

// Magnitudes beyond 1e±290 are left out: differences and steps of what remains can neither overflow nor vanish.
std::optional<Unplaceable> why_unplaceable(AxisScale scale, double value);

// The covered part of an axis, with low < high. A value in it lies between 0 (at low) and 1 (at high).
struct AxisRange {
  AxisScale scale = AxisScale::kLinear;
  double low = 0;
  double high = 1;

  double place(double value) const;
};

// Covers all values that can be placed, rounded out to ticks. A linear axis takes in zero where the values reach down
// to half of their maximum. No value at all, or one value only, gives a usable range too.
AxisRange fit_axis(const ChartAxis& axis, std::span<const double> values);

struct AxisTick {
  double value = 0;
  std::string label{};
};

// At most `most` (at least 2) ticks at round values, in rising order.
std::vector<AxisTick> choose_ticks(const ChartAxis& axis, const AxisRange& range, std::size_t most);

// As many ticks as have room on `length`, when a label takes extent(label) of it, centred on its tick.
std::vector<AxisTick> choose_ticks_that_fit(const ChartAxis& axis, const AxisRange& range, double length,
                                            const std::function<double(std::string_view)>& extent);

// A value in the words of the axis; what is not a number is written as such.
std::string format_value(const ChartAxis& axis, double value);

}  // namespace yoke::report
