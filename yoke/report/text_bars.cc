#include "yoke/report/text_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "yoke/base/text.h"
#include "yoke/report/table.h"

namespace yoke {
namespace {

constexpr std::size_t kBarWidthLeast = 10;
constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

// The cells of one bar, each one character, between two places on the axis (0 to 1). Only a bar to the right has a tip
// finer than a cell: Unicode has no eighths that are filled from the right.
std::vector<std::string> bar_cells(double base, double end, std::size_t width, PlotGlyphs glyphs) {
  std::vector<std::string> cells(width, " ");
  const auto columns = static_cast<double>(width);
  const auto zero = static_cast<std::size_t>(std::round(std::clamp(base, 0.0, 1.0) * columns));
  const double length = std::abs(end - base) * columns;
  const bool fine = glyphs == PlotGlyphs::kUtf8 && end > base;
  const double eighths = std::round(fine ? length * 8 : std::round(length) * 8);
  const std::size_t room = end > base ? width - zero : zero;
  const std::size_t full = std::min(room, static_cast<std::size_t>(eighths / 8));
  const std::size_t first = end > base ? zero : zero - full;
  std::fill_n(cells.begin() + static_cast<std::ptrdiff_t>(first), full, glyphs == PlotGlyphs::kUtf8 ? "█" : "#");
  const auto remainder = static_cast<std::size_t>(std::fmod(eighths, 8));
  if (remainder > 0 && full < room) cells[first + full] = kEighths[remainder];
  return cells;
}

std::string render_bar(const BarLayout& layout, double value, std::size_t width, PlotGlyphs glyphs) {
  const bool drawn = !why_unplaceable(layout.value.scale, value);
  const double base = layout.value.place(layout.base);
  std::vector<std::string> cells = bar_cells(base, drawn ? layout.value.place(value) : base, width, glyphs);
  for (const ChartReference& reference : layout.references) {
    const double place = std::clamp(layout.value.place(reference.value), 0.0, 1.0);
    std::string& cell = cells[std::min(width - 1, static_cast<std::size_t>(place * static_cast<double>(width)))];
    if (cell == " ") cell = "|";
  }
  std::string bar;
  for (const std::string& cell : cells) bar += cell;
  return bar;
}

// The columns before the bars: the category, the series where there are several, and the value.
Table label_table(const BarChart& chart) {
  Table table{.title = chart.title, .columns = {{.fit = ColumnFit::kShrinks}}};
  const bool named = chart.series.size() > 1;
  if (named) table.columns.push_back({.fit = ColumnFit::kShrinks});
  table.columns.push_back({.align = TextAlign::kRight});
  for (std::size_t c = 0; c < chart.categories.size(); ++c) {
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      auto& row = table.rows.emplace_back();
      row.push_back(s == 0 ? chart.categories[c] : "");
      if (named) row.push_back(chart.series[s].name);
      row.push_back(format_value(chart.value, chart.series[s].values[c]));
    }
  }
  return table;
}

// What is left of the width beside the labels.
std::size_t bar_width(const Table& labels, std::size_t width) {
  constexpr std::size_t kColumnGap = 2;
  std::size_t taken = 0;
  for (std::size_t c = 0; c < labels.columns.size(); ++c) {
    std::size_t column = 1;
    for (const auto& row : labels.rows) column = std::max(column, widest(wrap_text(row[c], kUnlimitedWidth)));
    taken += column + kColumnGap;
  }
  return width > taken + kBarWidthLeast ? width - taken : kBarWidthLeast;
}

}  // namespace

std::string render_text(const BarChart& chart, const TextPlotOptions& options) {
  // Bars fill what they are given, and "unlimited" is no length.
  const std::size_t width = std::min<std::size_t>(options.width, 1000);
  const BarLayout layout = lay_out(chart);
  Table table = label_table(chart);
  const std::size_t room = bar_width(table, width);
  table.columns.push_back({});
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const double value = chart.series[r % chart.series.size()].values[r / chart.series.size()];
    table.rows[r].push_back(render_bar(layout, value, room, options.glyphs));
  }
  if (!chart.value.label.empty()) table.footnotes.push_back(chart.value.label);
  for (const ChartReference& reference : layout.references) {
    table.footnotes.push_back(fmt::format("| {}: {}", reference.label, format_value(chart.value, reference.value)));
  }
  table.footnotes.insert(table.footnotes.end(), layout.notes.begin(), layout.notes.end());
  return render_text(table, {.width = width});
}

}  // namespace yoke
