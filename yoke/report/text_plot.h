// Line charts on the terminal: lines and points on a grid of characters.
//
//   fmt::print("{}", render_text(chart, {.width = 100}));
//
// The text is no wider than asked unless the labels alone leave no room; it is never narrower than a plot needs.
#pragma once
#include <cstddef>
#include <string>

#include "yoke/base/terminal.h"
#include "yoke/report/chart.h"
#include "yoke/report/wrap.h"

namespace yoke::report {

struct TextPlotOptions {
  std::size_t width = output_width(kTerminalWidth);
  std::size_t height = 16;  // of the grid, in lines
};

std::string render_text(const LineChart& chart, const TextPlotOptions& options = {});

}  // namespace yoke::report
