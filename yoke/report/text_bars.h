// Bar charts on the terminal: one line per bar with its name, its value and a bar scaled to the width.
//
//   fmt::print("{}", render_text(chart, {.width = 100, .glyphs = PlotGlyphs::kAscii}));
#pragma once
#include <string>

#include "yoke/report/chart.h"
#include "yoke/report/text_plot.h"

namespace yoke {

// The height of the options is not used: there is a line for each bar.
std::string render_text(const BarChart& chart, const TextPlotOptions& options = {});

}  // namespace yoke
