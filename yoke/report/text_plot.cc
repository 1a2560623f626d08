#include "yoke/report/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "yoke/base/text.h"

namespace yoke::report {
namespace {

constexpr std::size_t kMinGridWidth = 10;
constexpr std::size_t kMinGridHeight = 3;

// Series beyond the marks use them again; the legend still lists all.
constexpr std::array<std::string_view, 8> kPlotMarks = {"●", "○", "▲", "△", "■", "□", "◆", "◇"};
constexpr std::string_view kTrace = "·", kReference = "┄", kSeveral = "※";
constexpr std::string_view kSide = "│", kCorner = "└", kFloor = "─", kTick = "┴";

// A rectangle of characters; row 0 is the top. Marks cover traces, and traces cover references.
class Grid {
 public:
  Grid(std::size_t width, std::size_t height) : width_(width), height_(height), cells_(width * height) {}

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  std::size_t column(double place) const { return index(place, width_); }
  std::size_t row(double place) const { return height_ - 1 - index(place, height_); }

  void put_reference(double y) {
    for (std::size_t c = 0; c < width_; ++c) at(c, row(y)) = {kReference, {}};
  }
  void put_trace(double x, double y) {
    Cell& cell = at(column(x), row(y));
    if (!cell.series) cell.text = kTrace;
  }
  void put_mark(double x, double y, std::size_t series) {
    Cell& cell = at(column(x), row(y));
    const bool meets = cell.series && *cell.series != series;
    has_several_ |= meets;
    cell = {meets ? kSeveral : kPlotMarks[series % kPlotMarks.size()], series};
  }

  bool has_several() const { return has_several_; }
  std::string line(std::size_t row_index) const {
    std::string text;
    for (std::size_t c = 0; c < width_; ++c) text += cells_[row_index * width_ + c].text;
    return text;
  }

 private:
  struct Cell {
    std::string_view text = " ";
    std::optional<std::size_t> series;  // whose mark this is
  };
  Cell& at(std::size_t column, std::size_t row) { return cells_[row * width_ + column]; }
  static std::size_t index(double place, std::size_t count) {
    return static_cast<std::size_t>(std::round(std::clamp(place, 0.0, 1.0) * static_cast<double>(count - 1)));
  }

  std::size_t width_;
  std::size_t height_;
  std::vector<Cell> cells_;
  bool has_several_ = false;
};

void trace_run(Grid& grid, const LineLayout& layout, const std::vector<ChartPoint>& run) {
  for (std::size_t i = 1; i < run.size(); ++i) {
    const double x0 = layout.x.place(run[i - 1].x), x1 = layout.x.place(run[i].x);
    const double y0 = layout.y.place(run[i - 1].y), y1 = layout.y.place(run[i].y);
    // Enough steps that no cell on the way is jumped over.
    const double steps = std::ceil(std::max(std::abs(x1 - x0) * static_cast<double>(grid.width()),
                                            std::abs(y1 - y0) * static_cast<double>(grid.height())));
    for (int s = 1; s < steps; ++s) grid.put_trace(x0 + (x1 - x0) * s / steps, y0 + (y1 - y0) * s / steps);
  }
}

void draw(Grid& grid, const LineChart& chart, const LineLayout& layout) {
  for (const ChartReference& reference : layout.references) {
    grid.put_reference(layout.y.place(reference.value));
  }
  for (std::size_t s = 0; s < layout.runs.size(); ++s) {
    if (chart.series[s].style == SeriesStyle::kScatter) continue;
    for (const auto& run : layout.runs[s]) trace_run(grid, layout, run);
  }
  for (std::size_t s = 0; s < layout.runs.size(); ++s) {
    for (const auto& run : layout.runs[s]) {
      for (const ChartPoint& point : run) grid.put_mark(layout.x.place(point.x), layout.y.place(point.y), s);
    }
  }
}

// Tick labels come from the caller: one line each, whatever they hold.
std::string one_line(std::string_view label) { return printable(label, kUnlimitedWidth); }

std::vector<AxisTick> y_ticks(const LineChart& chart, const LineLayout& layout, std::size_t height) {
  auto ticks = choose_ticks_that_fit(chart.y, layout.y, static_cast<double>(height - 1), [](auto) { return 2.0; });
  for (AxisTick& tick : ticks) tick.label = one_line(tick.label);
  return ticks;
}

std::string render_grid(const Grid& grid, const LineLayout& layout, const std::vector<AxisTick>& ticks,
                        std::size_t margin) {
  std::vector<std::string> labels(grid.height());
  for (const AxisTick& tick : ticks) labels[grid.row(layout.y.place(tick.value))] = tick.label;
  std::string text;
  for (std::size_t r = 0; r < grid.height(); ++r) {
    std::string line = fmt::format("{} {}{}", pad_text(labels[r], margin, TextAlign::kRight), kSide, grid.line(r));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// A text at a column of a line.
struct PlacedText {
  std::size_t begin = 0;
  std::string text;
};

// Each label under its tick, but within the line. Where the last had to be pushed in, its neighbour gives way: the ends
// of an axis are what one looks for first.
std::vector<PlacedText> place_labels(const Grid& grid, const LineLayout& layout, const std::vector<AxisTick>& ticks,
                                     std::size_t left) {
  std::vector<PlacedText> placed;
  for (const AxisTick& tick : ticks) {
    const std::string label = one_line(tick.label);
    const std::size_t size = count_columns(label);
    const std::size_t middle = left + grid.column(layout.x.place(tick.value));
    const std::size_t end = left + grid.width();
    const std::size_t begin = std::min(middle - std::min(middle, size / 2), end - std::min(end, size));
    while (!placed.empty() && begin <= placed.back().begin + count_columns(placed.back().text)) placed.pop_back();
    placed.push_back({.begin = begin, .text = label});
  }
  return placed;
}

std::string render_x_axis(const Grid& grid, const LineChart& chart, const LineLayout& layout, std::size_t margin) {
  const std::size_t left = margin + 2;
  const auto extent = [](std::string_view label) { return static_cast<double>(count_columns(one_line(label)) + 2); };
  const auto ticks = choose_ticks_that_fit(chart.x, layout.x, static_cast<double>(grid.width() - 1), extent);
  std::vector<std::string_view> floor(grid.width(), kFloor);
  for (const AxisTick& tick : ticks) floor[grid.column(layout.x.place(tick.value))] = kTick;
  std::string text = fmt::format("{} {}", std::string(margin, ' '), kCorner);
  for (const std::string_view cell : floor) text += cell;
  std::string labels;
  for (const PlacedText& label : place_labels(grid, layout, ticks, left)) {
    labels += std::string(label.begin - count_columns(labels), ' ') + label.text;
  }
  return text + "\n" + labels + "\n";
}

// The name of the axis, centred under the grid where it fits there.
std::string render_x_label(const std::string& label, std::size_t left, std::size_t grid_width) {
  std::string text;
  if (label.empty()) return text;
  for (const std::string& line : wrap_text(label, left + grid_width)) {
    const bool fits = count_columns(line) <= grid_width;
    const std::size_t indent = fits ? left + (grid_width - count_columns(line)) / 2 : 0;
    text += std::string(indent, ' ') + line + "\n";
  }
  return text;
}

std::string render_legend(const LineChart& chart, const LineLayout& layout, const Grid& grid, std::size_t width) {
  std::string text;
  const auto add = [&](std::string_view mark, std::string_view name) {
    text += wrapped_paragraph(fmt::format("{} {}", mark, name), width);
  };
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    if (chart.series.size() == 1 && chart.series[s].name.empty()) continue;
    add(kPlotMarks[s % kPlotMarks.size()], chart.series[s].name);
  }
  if (grid.has_several()) add(kSeveral, "several series at one place");
  for (const ChartReference& reference : layout.references) {
    add(kReference, fmt::format("{}: {}", reference.label, format_value(chart.y, reference.value)));
  }
  return text;
}

}  // namespace

std::string render_text(const LineChart& chart, const TextPlotOptions& options) {
  // A grid fills what it is given, and "unlimited" is no length.
  const std::size_t width = std::min<std::size_t>(options.width, 1000);
  const LineLayout layout = lay_out(chart);
  const std::size_t height = std::clamp<std::size_t>(options.height, kMinGridHeight, 1000);
  const std::vector<AxisTick> ticks = y_ticks(chart, layout, height);
  std::size_t margin = 0;
  for (const AxisTick& tick : ticks) margin = std::max(margin, count_columns(tick.label));
  Grid grid(width > margin + 2 + kMinGridWidth ? width - margin - 2 : kMinGridWidth, height);
  draw(grid, chart, layout);

  std::string text = wrapped_paragraph(chart.title, width) + wrapped_paragraph(chart.y.label, width);
  text += render_grid(grid, layout, ticks, margin);
  text += render_x_axis(grid, chart, layout, margin) + render_x_label(chart.x.label, margin + 2, grid.width());
  text += render_legend(chart, layout, grid, width);
  for (const std::string& note : layout.notes) text += wrapped_paragraph(note, width);
  return text;
}

}  // namespace yoke::report
