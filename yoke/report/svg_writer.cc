#include "yoke/report/svg_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/text.h"
#include "yoke/report/xml.h"

namespace yoke::report {
namespace {

constexpr std::size_t kColours = 7;  // as many as chart_style() has
constexpr double kCharacter = 7.2;

// Paths around the point to be marked: disc, square, triangle, diamond, triangle upside down.
constexpr std::array<std::string_view, 5> kMarks = {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
                                                    "m-3.2 -3.2h6.4v6.4h-6.4z", "m0 -4.2l4 7h-8z",
                                                    "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z", "m0 4.2l4 -7h-8z"};

// Series that share a colour differ by their dashes.
std::string series_attributes(std::size_t series) {
  constexpr std::array<std::string_view, 3> kDashes = {"", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 3\""};
  return fmt::format("class=\"s{}\"{}", series % kColours, kDashes[series / kColours % kDashes.size()]);
}

std::string_view anchor(TextAlign align) {
  switch (align) {
    case TextAlign::kLeft:
      return "start";
    case TextAlign::kCentre:
      return "middle";
    case TextAlign::kRight:
      return "end";
  }
  return "start";
}

std::string coordinates(const std::vector<SvgPoint>& points) {
  std::string text;
  for (const SvgPoint& point : points) text += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

double svg_extent(std::string_view text) { return static_cast<double>(count_columns(text)) * kCharacter; }

std::size_t svg_columns(double width) { return static_cast<std::size_t>(std::max(8.0, width / kCharacter)); }

void SvgWriter::line(SvgPoint from, SvgPoint to, std::string_view css_class) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", css_class,
                       from.x, from.y, to.x, to.y);
}

void SvgWriter::text(SvgPoint at, TextAlign align, std::string_view css_class, std::string_view content) {
  body_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", css_class, at.x,
                       at.y, anchor(align), escape_xml(content));
}

void SvgWriter::polyline(const std::vector<SvgPoint>& points, std::size_t series) {
  body_ += fmt::format(
      "<polyline {} fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" stroke-linejoin=\"round\" "
      "points=\"{}\"/>\n",
      series_attributes(series), coordinates(points));
}

void SvgWriter::band(const std::vector<SvgPoint>& outline, std::size_t series) {
  body_ += fmt::format("<polygon class=\"s{}\" fill=\"currentColor\" fill-opacity=\"0.18\" points=\"{}\"/>\n",
                       series % kColours, coordinates(outline));
}

void SvgWriter::mark(SvgPoint at, std::size_t series, std::string_view tooltip) {
  body_ += fmt::format("<path class=\"s{}\" fill=\"currentColor\" d=\"M{:.1f} {:.1f}{}\"><title>{}</title></path>\n",
                       series % kColours, at.x, at.y, kMarks[series % kMarks.size()], escape_xml(tooltip));
}

void SvgWriter::spread(double x, double y_low, double y_high, std::size_t series) {
  body_ += fmt::format(
      "<path class=\"s{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" "
      "d=\"M{:.1f} {:.1f}h8m-4 0V{:.1f}m-4 0h8\"/>\n",
      series % kColours, x - 4, y_low, y_high);
}

void SvgWriter::bar(SvgPoint corner, double width, double height, std::size_t series, std::string_view tooltip) {
  constexpr std::array kOpacities = {1.0, 0.6, 0.3};  // for series that share a colour
  body_ += fmt::format(
      "<rect class=\"s{}\" fill=\"currentColor\" fill-opacity=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"><title>{}</title></rect>\n",
      series % kColours, kOpacities[series / kColours % kOpacities.size()], corner.x, corner.y, width, height,
      escape_xml(tooltip));
}

void SvgWriter::sample(SvgPoint at, std::size_t series, SeriesStyle style) {
  if (style == SeriesStyle::kLine) polyline({{at.x, at.y}, {at.x + 24, at.y}}, series);
  body_ += fmt::format("<path class=\"s{}\" fill=\"currentColor\" d=\"M{:.1f} {:.1f}{}\"/>\n", series % kColours,
                       at.x + 12, at.y, kMarks[series % kMarks.size()]);
}

double SvgWriter::title(double top, double width, std::string_view content) {
  if (content.empty()) return top;
  // Its letters are a third wider than those of the other texts.
  for (const std::string& row : wrap_text(content, svg_columns((width - 2 * kSvgMargin) * 3 / 4))) {
    text({kSvgMargin, top + 14}, TextAlign::kLeft, "title", row);
    top += 20;
  }
  return top + 4;
}

double SvgWriter::paragraph(double top, double width, std::string_view css_class, std::string_view content) {
  if (content.empty()) return top;
  for (const std::string& row : wrap_text(content, svg_columns(width - 2 * kSvgMargin))) {
    text({kSvgMargin, top + 12}, TextAlign::kLeft, css_class, row);
    top += kSvgLineHeight;
  }
  return top;
}

std::string SvgWriter::finish(const std::string& name, double width, double height, SvgUse use) const {
  const std::string escaped = escape_xml(name.empty() ? "Chart" : name);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"yoke-chart\" role=\"img\" aria-label=\"{0}\" "
      "width=\"{1:.0f}\" height=\"{2:.0f}\" viewBox=\"0 0 {1:.0f} {2:.0f}\">\n<title>{0}</title>\n",
      escaped, width, height);
  if (use == SvgUse::kStandalone) {
    svg += fmt::format("<style>{}</style>\n<rect class=\"paper\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n",
                       chart_style(use), width, height);
  }
  return svg + body_ + "</svg>\n";
}

double draw_legend(SvgWriter& svg, const std::vector<LegendEntry>& entries, double top, double width) {
  constexpr double kSample = 30, kGap = 22;
  if (entries.empty() || (entries.size() == 1 && entries[0].name.empty())) return top;
  double x = kSvgMargin, row_height = kSvgLineHeight;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto lines = wrap_text(entries[i].name, svg_columns(width - 2 * kSvgMargin - kSample));
    double extent = kSample;
    for (const std::string& line : lines) extent = std::max(extent, kSample + svg_extent(line));
    if (x > kSvgMargin && x + extent > width - kSvgMargin) {
      x = kSvgMargin;
      top += row_height + 2;
      row_height = kSvgLineHeight;
    }
    if (entries[i].sample == LegendSample::kLine) svg.sample({x, top + 8}, i, entries[i].style);
    if (entries[i].sample == LegendSample::kBar) svg.bar({x + 8, top + 2}, 12, 12, i, entries[i].name);
    for (std::size_t l = 0; l < lines.size(); ++l) {
      const double baseline = top + 12 + kSvgLineHeight * static_cast<double>(l);
      svg.text({x + kSample, baseline}, TextAlign::kLeft, "name", lines[l]);
    }
    row_height = std::max(row_height, kSvgLineHeight * static_cast<double>(lines.size()));
    x += extent + kGap;
  }
  return top + row_height + 6;
}

}  // namespace yoke::report
