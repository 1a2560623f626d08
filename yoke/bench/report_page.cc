#include "yoke/bench/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/clock.h"
#include "yoke/base/units.h"
#include "yoke/bench/shape.h"

namespace yoke {
namespace {

std::string size_text(double bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

ChartSeries& series_named(std::vector<ChartSeries>& series, const std::string& name) {
  const auto found = std::find_if(series.begin(), series.end(), [&](const auto& row) { return row.name == name; });
  if (found != series.end()) return *found;
  series.push_back({.name = name});
  return series.back();
}

bool has_sizes(const RunRecord& record) {
  return std::any_of(record.rows.begin(), record.rows.end(),
                     [&](const RecordRow& row) { return row.size > 0 && row.size != record.rows.front().size; });
}

// "GFLOP/s, GOP/s" where rows differ.
std::string units_of(const RunRecord& record) {
  std::vector<std::string> units;
  for (const RecordRow& row : record.rows) {
    if (std::find(units.begin(), units.end(), row.unit) == units.end()) units.push_back(row.unit);
  }
  return fmt::format("{}", fmt::join(units, ", "));
}

HtmlBlock chart_of(const RunRecord& record) {
  const std::string unit = units_of(record);
  if (has_sizes(record)) {
    LineChart chart{.title = fmt::format("{}, run {}", record.benchmark, record.id),
                    .x = {.label = "size", .scale = AxisScale::kLog2, .format = size_text},
                    .y = {.label = unit, .scale = unit == "us" ? AxisScale::kLog10 : AxisScale::kLinear}};
    for (const RecordRow& row : record.rows) {
      series_named(chart.series, row.name)
          .points.push_back({.x = static_cast<double>(row.size), .y = row.value, .y_low = row.low, .y_high = row.high});
    }
    return chart;
  }
  BarChart chart{.title = fmt::format("{}, run {}", record.benchmark, record.id),
                 .value = {.label = unit, .format = [](double value) { return fmt::format("{:.4g}", value); }}};
  BarSeries bars{.name = "median"};
  for (const RecordRow& row : record.rows) {
    chart.categories.push_back(row.name);
    bars.values.push_back(row.value);
  }
  chart.series.push_back(std::move(bars));
  return chart;
}

Table table_of(const RunRecord& record) {
  Table table{.columns = {{.header = "what"},
                          {.header = "size", .align = TextAlign::kRight},
                          {.header = "median", .align = TextAlign::kRight},
                          {.header = "quartiles", .align = TextAlign::kRight}}};
  for (const RecordRow& row : record.rows) {
    table.rows.push_back({row.name, row.size > 0 ? to_string(Bytes{row.size}) : "",
                          fmt::format("{:.4g} {}", row.value, row.unit),
                          fmt::format("{:.4g} to {:.4g}", row.low, row.high)});
  }
  return table;
}

}  // namespace

LineChart bandwidth_chart(const CollectiveRun& run) {
  LineChart chart{.title = fmt::format("{} over {} ranks", to_string(run.options.kind), run.ranks.size()),
                  .x = {.label = "size", .scale = AxisScale::kLog2, .format = size_text},
                  .y = {.label = "bus bandwidth (GB/s)"}};
  const bool several = run.options.types.size() > 1 || run.options.ops.size() > 1;
  for (const CollectiveRow& row : run.rows) {
    const std::string what = several ? fmt::format("{} {} ", row.type, row.op) : "";
    const auto add = [&](std::string_view placement, const PlacementResult& result) {
      series_named(chart.series, fmt::format("{}{}", what, placement))
          .points.push_back({.x = static_cast<double>(row.size), .y = result.bus_bandwidth});
    };
    add("out-of-place", row.out_of_place);
    if (traits_of(run.options.kind).in_place) add("in-place", row.in_place);
  }
  if (run.options.limit)
    chart.references = {{.value = run.options.limit->whole().value / 1e9, .label = "limit of the link"}};
  return chart;
}

HtmlPage report_page(const std::vector<RunRecord>& records) {
  HtmlPage page{.title = "Measurements by yoke"};
  page.blocks.push_back(HtmlParagraph{fmt::format(
      "{} run{}, newest first; written {}. Medians with quartiles; every timed result was checked. What each number "
      "means stands in docs/performance.md.",
      records.size(), records.size() == 1 ? "" : "s", utc_now())});
  for (const RunRecord& record : records) {
    page.blocks.push_back(HtmlHeading{fmt::format("Run {}: {}", record.id, record.benchmark)});
    page.blocks.push_back(HtmlFacts{{{"time", record.time},
                                     {"host", record.host},
                                     {"processor", record.processor},
                                     {"program", fmt::format("yoke {} ({})", record.version, record.commit)},
                                     {"summary", record.summary}}});
    if (record.rows.empty()) {
      page.blocks.push_back(HtmlNote{.tone = NoteTone::kWarning, .text = "This run ended before its first row."});
      continue;
    }
    page.blocks.push_back(chart_of(record));
    page.blocks.push_back(table_of(record));
  }
  return page;
}

}  // namespace yoke
