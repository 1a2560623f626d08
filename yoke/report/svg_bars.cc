#include "yoke/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/report/svg_writer.h"

namespace yoke::report {
namespace {

constexpr double kBarHeight = 16;
constexpr double kBarGap = 2;        // between the bars of one category
constexpr double kCategoryGap = 12;  // between categories
constexpr double kMinBarsWidth = 120;
constexpr std::size_t kCategoryColumns = 30;  // longer names are wrapped

// One category: its name on a few lines beside its bars.
struct Category {
  std::vector<std::string> lines{};
  double height = 0;
};

std::vector<Category> measure_categories(const BarChart& chart) {
  const double bars = static_cast<double>(chart.series.size()) * (kBarHeight + kBarGap) - kBarGap;
  std::vector<Category> categories;
  for (const std::string& name : chart.categories) {
    Category category{.lines = wrap_text(name, kCategoryColumns)};
    category.height = std::max(bars, kSvgLineHeight * static_cast<double>(category.lines.size()));
    categories.push_back(std::move(category));
  }
  return categories;
}

struct BarArea {
  AxisRange range{};
  double left = 0, top = 0, right = 0, bottom = 0;

  double x(double value) const { return left + range.place(value) * (right - left); }
};

// Names go on the left, and on the right there must be room for the value behind the longest bar.
BarArea place_area(const BarChart& chart, const BarLayout& layout, const std::vector<Category>& categories, double top,
                   double width) {
  BarArea area{.range = layout.value, .top = top, .bottom = top};
  double names = 0, values = 0;
  for (const Category& category : categories) {
    for (const std::string& line : category.lines) names = std::max(names, svg_extent(line));
    area.bottom += category.height + kCategoryGap;
  }
  for (const BarSeries& series : chart.series) {
    for (const double value : series.values) values = std::max(values, svg_extent(format_value(chart.value, value)));
  }
  area.left = kSvgMargin + names + 8;
  area.right = std::max(width - kSvgMargin - values - 8, area.left + kMinBarsWidth);
  return area;
}

void draw_axis(SvgWriter& svg, const BarArea& area, const BarChart& chart, const BarLayout& layout, double width) {
  const auto extent = [](std::string_view label) { return svg_extent(label) + 12; };
  for (const AxisTick& tick : choose_ticks_that_fit(chart.value, area.range, area.right - area.left, extent)) {
    const double x = area.x(tick.value);
    const double half = svg_extent(tick.label) / 2;
    svg.line({x, area.top}, {x, area.bottom + 4}, "grid");
    const double label_x = std::clamp(x, std::min(half, width / 2), std::max(width - half, width / 2));
    svg.text({label_x, area.bottom + 18}, TextAlign::kCentre, "faint", tick.label);
  }
  svg.line({area.x(layout.base), area.top}, {area.x(layout.base), area.bottom}, "axis");
}

// The value stands behind the bar, or to the right of zero where the bar goes to the left.
void draw_bar(SvgWriter& svg, const BarArea& area, const BarChart& chart, const BarLayout& layout, std::size_t c,
              std::size_t s, double top) {
  const double value = chart.series[s].values[c];
  const std::string text = format_value(chart.value, value);
  const double base = area.x(layout.base);
  const double end = why_unplaceable(layout.value.scale, value) ? base : area.x(value);
  const std::string& name = chart.series[s].name;
  const std::string tooltip = fmt::format("{}{}{}: {}", chart.categories[c], name.empty() ? "" : ", ", name, text);
  svg.bar({std::min(base, end), top}, std::abs(end - base), kBarHeight, s, tooltip);
  svg.text({std::max(base, end) + 6, top + 12}, TextAlign::kLeft, "halo", text);
}

void draw_categories(SvgWriter& svg, const BarArea& area, const BarChart& chart, const BarLayout& layout,
                     const std::vector<Category>& categories) {
  double top = area.top + kCategoryGap / 2;
  for (std::size_t c = 0; c < categories.size(); ++c) {
    const auto lines = static_cast<double>(categories[c].lines.size());
    double baseline = top + (categories[c].height - lines * kSvgLineHeight) / 2 + 12;
    for (const std::string& line : categories[c].lines) {
      svg.text({area.left - 8, baseline}, TextAlign::kRight, "name", line);
      baseline += kSvgLineHeight;
    }
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      draw_bar(svg, area, chart, layout, c, s, top + static_cast<double>(s) * (kBarHeight + kBarGap));
    }
    top += categories[c].height + kCategoryGap;
  }
}

std::string reference_text(const BarChart& chart, const ChartReference& reference) {
  const std::string value = format_value(chart.value, reference.value);
  return reference.label.empty() ? value : fmt::format("{}: {}", reference.label, value);
}

// Each label has a row of its own above the bars and ends left of its line. The largest value is on top, so that its
// line comes down on the right of the other labels.
void draw_references(SvgWriter& svg, const BarArea& area, const BarChart& chart, const BarLayout& layout) {
  std::vector<ChartReference> references = layout.references;
  std::stable_sort(references.begin(), references.end(), [](auto& a, auto& b) { return a.value > b.value; });
  const auto row = [&](std::size_t i) {
    return area.top - kSvgLineHeight * static_cast<double>(references.size() - i);
  };
  for (std::size_t i = 0; i < references.size(); ++i) {
    svg.line({area.x(references[i].value), row(i)}, {area.x(references[i].value), area.bottom}, "reference");
  }
  for (std::size_t i = 0; i < references.size(); ++i) {
    const std::string label = reference_text(chart, references[i]);
    const double x = std::max(area.x(references[i].value) - 6, kSvgMargin + svg_extent(label));
    svg.text({x, row(i) + 11}, TextAlign::kRight, "halo", label);
  }
}

}  // namespace

std::string render_svg(const BarChart& chart, const SvgOptions& options) {
  const BarLayout layout = lay_out(chart);
  const std::vector<Category> categories = measure_categories(chart);
  SvgWriter svg;
  std::vector<LegendEntry> entries;
  for (const BarSeries& series : chart.series) entries.push_back({.name = series.name, .sample = LegendSample::kBar});
  double top = svg.title(kSvgMargin, options.width, chart.title);
  top = draw_legend(svg, entries, top, options.width) + 4;
  top += kSvgLineHeight * static_cast<double>(layout.references.size());

  const BarArea area = place_area(chart, layout, categories, top, options.width);
  const double width = std::max(options.width, area.right + 2 * kSvgMargin);
  draw_axis(svg, area, chart, layout, width);
  draw_references(svg, area, chart, layout);
  draw_categories(svg, area, chart, layout, categories);
  top = svg.paragraph(area.bottom + 28, options.width, "axis-label", chart.value.label);
  for (const std::string& note : layout.notes) top = svg.paragraph(top, options.width, "faint", note);
  return svg.finish(chart.title, width, top + kSvgMargin, options.use);
}

}  // namespace yoke::report
