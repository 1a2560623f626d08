// Charts as SVG: for a file of its own, or for a page (see html.h).
//
//   write_file("all_reduce.svg", render_svg(chart));
//
// Well-formed XML whatever the texts hold, no scripts, nothing loaded from elsewhere. Series differ by colour (Okabe
// and Ito's palette, which colour-blind readers can tell apart), by mark, and beyond the palette by dashes.
#pragma once
#include <string>

#include "yoke/report/chart.h"

namespace yoke::report {

// On its own a chart carries its style and a white ground, since viewers put it on any ground. On a page it has
// neither: the page holds chart_style() once and follows the reader's light or dark setting.
enum class SvgUse { kStandalone, kEmbedded };

struct SvgOptions {
  double width = 720;
  double height = 400;  // grows where legend and notes need it; bar charts take what their bars need
  SvgUse use = SvgUse::kStandalone;
};

std::string render_svg(const LineChart& chart, const SvgOptions& options = {});
std::string render_svg(const BarChart& chart, const SvgOptions& options = {});

// The CSS of charts. Embedded, it covers the dark setting too.
std::string chart_style(SvgUse use);

}  // namespace yoke::report
