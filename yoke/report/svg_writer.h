// The elements of a chart as SVG text: used by svg_lines.cc and svg_bars.cc only. Coordinates are pixels from the upper
// left; every text is escaped here and nowhere else.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/report/svg_chart.h"
#include "yoke/report/wrap.h"

namespace yoke::report {

inline constexpr double kSvgMargin = 12;
inline constexpr double kSvgLineHeight = 16;

struct SvgPoint {
  double x = 0;
  double y = 0;
};

// How wide a text will be, roughly: the font is not known. 7.2 px suits 12 px sans-serif with room to spare.
double svg_extent(std::string_view text);
std::size_t svg_columns(double width);  // the reverse: how many characters have room

class SvgWriter {
 public:
  void line(SvgPoint from, SvgPoint to, std::string_view css_class);
  void text(SvgPoint at, TextAlign align, std::string_view css_class, std::string_view content);
  void polyline(const std::vector<SvgPoint>& points, std::size_t series);
  void band(const std::vector<SvgPoint>& outline, std::size_t series);
  void mark(SvgPoint at, std::size_t series, std::string_view tooltip);
  void spread(double x, double y_low, double y_high, std::size_t series);
  void bar(SvgPoint corner, double width, double height, std::size_t series, std::string_view tooltip);
  // A line as it stands in the legend.
  void sample(SvgPoint at, std::size_t series, SeriesStyle style);

  // Lines of wrapped text from `top` on; both answer where they end.
  double title(double top, double width, std::string_view content);
  double paragraph(double top, double width, std::string_view css_class, std::string_view content);

  std::string finish(const std::string& name, double width, double height, SvgUse use) const;

 private:
  std::string body_;
};

// Names with their samples, in as many rows as needed. A single series without a name needs none.
enum class LegendSample { kLine, kBar };
struct LegendEntry {
  std::string name{};
  LegendSample sample = LegendSample::kLine;
  SeriesStyle style = SeriesStyle::kLine;
};
double draw_legend(SvgWriter& svg, const std::vector<LegendEntry>& entries, double top, double width);

}  // namespace yoke::report
