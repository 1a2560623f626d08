// The data of a chart, to be drawn on the terminal (text_plot.h), as SVG (svg_chart.h) or on a page (html.h).
//
//   const LineChart chart{.title = "all-reduce over two nodes",
//                         .x = {.label = "size", .scale = AxisScale::kLog2, .format = bytes_text},
//                         .y = {.label = "bus bandwidth (GB/s)"},
//                         .series = {{.name = "direct", .points = {{.x = 8, .y = 0.1}, {.x = 16, .y = 0.2}}}},
//                         .references = {{.value = 24.5, .label = "ceiling"}}};
//
// What cannot be drawn (not finite, or not positive on a logarithmic axis) is left out and said below the chart.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "yoke/report/axis.h"

namespace yoke::report {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::optional<double> y_low{};  // the spread of the measurement, such as its quartiles
  std::optional<double> y_high{};
};

enum class SeriesStyle { kLine, kScatter };

struct ChartSeries {
  std::string name{};
  std::vector<ChartPoint> points{};  // joined in this order
  SeriesStyle style = SeriesStyle::kLine;
};

// A value to compare with: the ceiling of the hardware, the promise of the plan.
struct ChartReference {
  double value = 0;
  std::string label{};
};

enum class SpreadStyle { kBars, kBand };

struct LineChart {
  std::string title{};
  ChartAxis x{};
  ChartAxis y{};
  std::vector<ChartSeries> series{};
  std::vector<ChartReference> references{};  // values of y
  SpreadStyle spread = SpreadStyle::kBars;
};

struct BarSeries {
  std::string name{};
  std::vector<double> values{};  // one per category: anything else is a bug. Not measured: NaN
};

// Horizontal bars, which leave room for long names. On a linear axis bars start at zero; on a logarithmic one, which
// has none, at the low end.
struct BarChart {
  std::string title{};
  ChartAxis value{};
  std::vector<std::string> categories{};
  std::vector<BarSeries> series{};
  std::vector<ChartReference> references{};
};

// What both ways of drawing need to know first. Runs are the stretches of a series without a point that was left out: a
// line across a failed measurement would invent one.
struct LineLayout {
  AxisRange x{};
  AxisRange y{};
  std::vector<std::vector<std::vector<ChartPoint>>> runs{};  // [series][run][point]
  std::vector<ChartReference> references{};                  // those that can be drawn
  std::vector<std::string> notes{};                          // what was left out, for the reader
};
LineLayout lay_out(const LineChart& chart);

struct BarLayout {
  AxisRange value{};
  double base = 0;  // where bars start, as a value
  std::vector<ChartReference> references{};
  std::vector<std::string> notes{};
};
BarLayout lay_out(const BarChart& chart);

}  // namespace yoke::report
