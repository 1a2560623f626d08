#include "yoke/report/chart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "yoke/base/check.h"

namespace yoke::report {
namespace {

// Counts what is left out, and why.
class LeftOut {
 public:
  // True if the value can be drawn on every one of its axes: `reasons` has one answer per axis.
  bool admits(std::initializer_list<std::optional<Unplaceable>> reasons) {
    ++seen_;
    for (const auto& reason : reasons) {
      if (!reason) continue;
      ++counts_[static_cast<std::size_t>(*reason)];
      ++left_out_;
      return false;
    }
    return true;
  }

  std::size_t drawn() const { return seen_ - left_out_; }

  void describe(std::string_view plural, std::vector<std::string>& notes) const {
    constexpr std::array<std::string_view, 3> kReasons = {"not finite", "not positive on a logarithmic axis",
                                                          "too large or too small to draw"};
    if (left_out_ == 0) return;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
      if (counts_[i] > 0) parts.push_back(fmt::format("{} {}", counts_[i], kReasons[i]));
    }
    notes.push_back(fmt::format("{} of {} {} not shown: {}", left_out_, seen_, plural, fmt::join(parts, ", ")));
  }

 private:
  std::size_t seen_ = 0;
  std::size_t left_out_ = 0;
  std::array<std::size_t, 3> counts_{};
};

std::vector<ChartReference> drawable(const std::vector<ChartReference>& references, AxisScale scale,
                                     std::vector<double>& values, std::vector<std::string>& notes) {
  LeftOut left_out;
  std::vector<ChartReference> kept;
  for (const ChartReference& reference : references) {
    if (!left_out.admits({why_unplaceable(scale, reference.value)})) continue;
    kept.push_back(reference);
    values.push_back(reference.value);
  }
  left_out.describe("reference lines", notes);
  return kept;
}

// The end of a spread if it can be drawn.
std::optional<double> drawable_end(std::optional<double> end, AxisScale scale, LeftOut& left_out,
                                   std::vector<double>& values) {
  if (!end || !left_out.admits({why_unplaceable(scale, *end)})) return std::nullopt;
  values.push_back(*end);
  return end;
}

}  // namespace

LineLayout lay_out(const LineChart& chart) {
  LineLayout layout;
  LeftOut points, spreads;
  std::vector<double> xs, ys;
  for (const ChartSeries& series : chart.series) {
    auto& runs = layout.runs.emplace_back();
    bool joined = false;
    for (ChartPoint point : series.points) {
      if (!points.admits({why_unplaceable(chart.x.scale, point.x), why_unplaceable(chart.y.scale, point.y)})) {
        joined = false;
        continue;
      }
      point.y_low = drawable_end(point.y_low, chart.y.scale, spreads, ys);
      point.y_high = drawable_end(point.y_high, chart.y.scale, spreads, ys);
      if (!joined) runs.emplace_back();
      runs.back().push_back(point);
      xs.push_back(point.x);
      ys.push_back(point.y);
      joined = true;
    }
  }
  points.describe("points", layout.notes);
  spreads.describe("ends of spreads", layout.notes);
  layout.references = drawable(chart.references, chart.y.scale, ys, layout.notes);
  if (points.drawn() == 0) layout.notes.emplace_back("there are no points to show");
  layout.x = fit_axis(chart.x, xs);
  layout.y = fit_axis(chart.y, ys);
  return layout;
}

BarLayout lay_out(const BarChart& chart) {
  BarLayout layout;
  LeftOut left_out;
  std::vector<double> values;
  for (const BarSeries& series : chart.series) {
    YOKE_CHECK_EQ(series.values.size(), chart.categories.size());
    for (const double value : series.values) {
      if (left_out.admits({why_unplaceable(chart.value.scale, value)})) values.push_back(value);
    }
  }
  left_out.describe("bars", layout.notes);
  if (left_out.drawn() == 0) layout.notes.emplace_back("there are no bars to show");
  layout.references = drawable(chart.references, chart.value.scale, values, layout.notes);
  if (chart.value.scale == AxisScale::kLinear) values.push_back(0);
  layout.value = fit_axis(chart.value, values);
  layout.base = chart.value.scale == AxisScale::kLinear ? 0 : layout.value.low;
  return layout;
}

}  // namespace yoke::report
