#include "yoke/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/report/svg_writer.h"

namespace yoke::report {
namespace {

constexpr double kMinPlotHeight = 160;
constexpr double kMinPlotWidth = 120;
constexpr std::size_t kMaxMarks = 60;  // a series with more points is drawn without marks, which would be a blur

// Where the axes lie on the picture, and with them every point.
struct PlotArea {
  AxisRange x_range{};
  AxisRange y_range{};
  double left = 0, top = 0, right = 0, bottom = 0;

  double x(double value) const { return left + x_range.place(value) * (right - left); }
  double y(double value) const { return bottom - y_range.place(value) * (bottom - top); }
  SvgPoint point(const ChartPoint& p) const { return {x(p.x), y(p.y)}; }
};

void draw_y_axis(SvgWriter& svg, const PlotArea& area, const std::vector<AxisTick>& ticks) {
  for (const AxisTick& tick : ticks) {
    const double y = area.y(tick.value);
    svg.line({area.left, y}, {area.right, y}, "grid");
    svg.text({area.left - 8, y + 4}, TextAlign::kRight, "faint", tick.label);
  }
}

// Labels at the ends are pushed in, so that none is cut off by the edge of the picture.
void draw_x_axis(SvgWriter& svg, const PlotArea& area, const ChartAxis& axis, double width) {
  const auto extent = [](std::string_view label) { return svg_extent(label) + 12; };
  for (const AxisTick& tick : choose_ticks_that_fit(axis, area.x_range, area.right - area.left, extent)) {
    const double x = area.x(tick.value);
    const double half = svg_extent(tick.label) / 2;
    svg.line({x, area.top}, {x, area.bottom}, "grid");
    svg.line({x, area.bottom}, {x, area.bottom + 4}, "axis");
    const double label_x = std::clamp(x, std::min(half, width / 2), std::max(width - half, width / 2));
    svg.text({label_x, area.bottom + 18}, TextAlign::kCentre, "faint", tick.label);
  }
  svg.line({area.left, area.bottom}, {area.right, area.bottom}, "axis");
}

void draw_spread(SvgWriter& svg, const PlotArea& area, const std::vector<ChartPoint>& run, std::size_t series,
                 SpreadStyle style) {
  std::vector<SvgPoint> upper, lower;
  for (const ChartPoint& p : run) {
    if (!p.y_low && !p.y_high) continue;
    const double low = area.y(p.y_low.value_or(p.y));
    const double high = area.y(p.y_high.value_or(p.y));
    if (style == SpreadStyle::kBars) svg.spread(area.x(p.x), low, high, series);
    upper.push_back({area.x(p.x), high});
    lower.push_back({area.x(p.x), low});
  }
  if (style != SpreadStyle::kBand || upper.size() < 2) return;
  upper.insert(upper.end(), lower.rbegin(), lower.rend());
  svg.band(upper, series);
}

std::string tooltip(const LineChart& chart, const ChartSeries& series, const ChartPoint& p) {
  std::string text = fmt::format("{}, {}", format_value(chart.x, p.x), format_value(chart.y, p.y));
  if (p.y_low || p.y_high) {
    text += fmt::format(" ({} to {})", format_value(chart.y, p.y_low.value_or(p.y)),
                        format_value(chart.y, p.y_high.value_or(p.y)));
  }
  return series.name.empty() ? text : series.name + ": " + text;
}

void draw_series(SvgWriter& svg, const PlotArea& area, const LineChart& chart, const LineLayout& layout,
                 std::size_t s) {
  const ChartSeries& series = chart.series[s];
  for (const auto& run : layout.runs[s]) {
    draw_spread(svg, area, run, s, chart.spread);
    std::vector<SvgPoint> path;
    path.reserve(run.size());
    for (const ChartPoint& p : run) path.push_back(area.point(p));
    if (series.style == SeriesStyle::kLine && path.size() > 1) svg.polyline(path, s);
    // A point alone has no line to be seen by.
    const bool crowded = series.style == SeriesStyle::kLine && series.points.size() > kMaxMarks && run.size() > 1;
    if (crowded) continue;
    for (const ChartPoint& p : run) svg.mark(area.point(p), s, tooltip(chart, series, p));
  }
}

// The next baseline from `baseline` on downwards whose letters touch none of the lines.
double clear_of_lines(double baseline, const std::vector<double>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] < baseline - 12 || lines[i] > baseline + 4) continue;
    baseline = lines[i] + 14;
    i = static_cast<std::size_t>(-1);  // from the start: further down another line may be in the way
  }
  return baseline;
}

// Labels stand above their lines at the left, where rising curves are lowest; where that would put them on another line
// or label or out of the plot, they move down.
void draw_reference_labels(SvgWriter& svg, const PlotArea& area, const LineChart& chart, const LineLayout& layout) {
  std::vector<ChartReference> references = layout.references;
  std::stable_sort(references.begin(), references.end(), [](auto& a, auto& b) { return a.value > b.value; });
  std::vector<double> lines;
  lines.reserve(references.size());
  for (const ChartReference& reference : references) lines.push_back(area.y(reference.value));
  double free_from = area.top;
  for (std::size_t i = 0; i < references.size(); ++i) {
    const double baseline = clear_of_lines(std::max(lines[i] - 5, free_from + 12), lines);
    free_from = baseline + 3;
    const std::string value = format_value(chart.y, references[i].value);
    const std::string label = references[i].label.empty() ? value : fmt::format("{}: {}", references[i].label, value);
    svg.text({area.left + 8, baseline}, TextAlign::kLeft, "halo", label);
  }
}

std::vector<LegendEntry> legend_entries(const LineChart& chart) {
  std::vector<LegendEntry> entries;
  for (const ChartSeries& series : chart.series) entries.push_back({.name = series.name, .style = series.style});
  return entries;
}

double draw_below(SvgWriter& svg, const LineChart& chart, const LineLayout& layout, double top, double width) {
  top = svg.paragraph(top, width, "axis-label", chart.x.label);
  for (const std::string& note : layout.notes) top = svg.paragraph(top, width, "faint", note);
  return top;
}

}  // namespace

std::string render_svg(const LineChart& chart, const SvgOptions& options) {
  const LineLayout layout = lay_out(chart);
  SvgWriter svg;
  double top = svg.title(kSvgMargin, options.width, chart.title);
  top = draw_legend(svg, legend_entries(chart), top, options.width);
  top = svg.paragraph(top, options.width, "axis-label", chart.y.label) + 10;

  SvgWriter measure;
  const double below = 28 + draw_below(measure, chart, layout, 0, options.width) + kSvgMargin;
  const double height = std::max(options.height, top + below + kMinPlotHeight);
  PlotArea area{.x_range = layout.x, .y_range = layout.y, .top = top, .bottom = height - below};
  const auto y_ticks = choose_ticks_that_fit(chart.y, layout.y, area.bottom - area.top, [](auto) { return 28.0; });
  double labels = 0;
  for (const AxisTick& tick : y_ticks) labels = std::max(labels, svg_extent(tick.label));
  area.left = kSvgMargin + labels + 8;
  area.right = std::max(options.width - 2 * kSvgMargin, area.left + kMinPlotWidth);
  const double width = std::max(options.width, area.right + 2 * kSvgMargin);

  draw_y_axis(svg, area, y_ticks);
  draw_x_axis(svg, area, chart.x, width);
  for (const ChartReference& reference : layout.references) {
    svg.line({area.left, area.y(reference.value)}, {area.right, area.y(reference.value)}, "reference");
  }
  for (std::size_t s = 0; s < layout.runs.size(); ++s) draw_series(svg, area, chart, layout, s);
  draw_reference_labels(svg, area, chart, layout);
  draw_below(svg, chart, layout, area.bottom + 28, options.width);
  return svg.finish(chart.title, width, height, options.use);
}

}  // namespace yoke::report
