#include "yoke/bench/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "yoke/base/clock.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/units.h"
#include "yoke/bench/shape.h"

namespace yoke::bench {
namespace {

constexpr std::size_t kTableRowsShown = 8;  // of a run; a longer table is folded

std::string size_text(double bytes) { return yoke::to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

report::ChartSeries& series_named(std::vector<report::ChartSeries>& series, const std::string& name) {
  const auto found = std::find_if(series.begin(), series.end(), [&](const auto& row) { return row.name == name; });
  if (found != series.end()) return *found;
  series.push_back({.name = name});
  return series.back();
}

// "17.7 us", "4.21 ms", "12.3 GB/s": three digits, in the unit that people use.
std::string value_text(double value, const std::string& unit) {
  return unit == "us" ? to_string(Seconds{value / 1e6}) : plain_number(value) + " " + unit;
}

// What a collective's record says beside its rows; empty for other benchmarks, and for records of older programs.
struct CollectiveFacts {
  std::optional<comm::CollectiveKind> kind = {};
  int ranks = 0;
  std::string cluster, nodes, transport, verdict;
  std::optional<double> limit = {};  // GB/s
};

std::string text_in(const Document& settings, std::string_view key) {
  const Document* found = settings.find(key);
  return found ? found->text : "";
}

// The settings of a collective are its options, and beside them what the run found.
Document options_in(Document settings) {
  std::erase_if(settings.fields, [](const auto& field) {
    return field.first == "ranks" || field.first == "transport" || field.first == "verdict" || field.first == "nodes" ||
           field.first == "cluster";
  });
  return settings;
}

CollectiveFacts facts_of(const RunRecord& record) {
  CollectiveFacts facts;
  const auto settings = try_to([&] { return parse_json(record.settings, "settings"); });
  if (!settings || !settings->find("collective")) return facts;
  facts.ranks = std::atoi(text_in(*settings, "ranks").c_str());
  facts.cluster = text_in(*settings, "cluster");
  facts.nodes = text_in(*settings, "nodes");
  facts.transport = text_in(*settings, "transport");
  facts.verdict = text_in(*settings, "verdict");
  if (const auto options = try_to([&] { return from_json<CollectiveOptions>(options_in(*settings)); })) {
    facts.kind = options->kind;
    if (options->limit) facts.limit = options->limit->whole().value / 1e9;
  }
  return facts;
}

// Of one row, in GB/s; nothing where the record is no collective's.
std::optional<double> bus_bandwidth(const CollectiveFacts& facts, const RecordRow& row) {
  if (!facts.kind || facts.ranks < 2 || row.value <= 0) return std::nullopt;
  const CollectiveShape shape = shape_of(*facts.kind, static_cast<std::size_t>(row.size), 1, 0, facts.ranks);
  return bandwidth_of(*facts.kind, shape.count, 1, facts.ranks, row.value / 1e6).bus;
}

// What a chart shows of a record: bus bandwidths of a collective, milliseconds where microseconds are many.
std::vector<RecordRow> charted_rows(const RunRecord& record, const CollectiveFacts& facts) {
  std::vector<RecordRow> rows = record.rows;
  const bool slow = std::any_of(rows.begin(), rows.end(), [](const RecordRow& row) { return row.value >= 1000; });
  for (RecordRow& row : rows) {
    const auto convert = [&](auto&& converted, std::string unit) {
      // A long time is a low bandwidth.
      const auto [low, high] = std::minmax({converted(row.low), converted(row.high)});
      row.value = converted(row.value), row.low = low, row.high = high, row.unit = std::move(unit);
    };
    if (bus_bandwidth(facts, row)) {
      convert([&](double us) { return us > 0 ? bus_bandwidth(facts, {.size = row.size, .value = us}).value_or(0) : 0; },
              "bus bandwidth (GB/s)");
    } else if (row.unit == "us" && slow) {
      convert([](double us) { return us / 1000; }, "ms");
    }
  }
  return rows;
}

report::LineChart line_chart(const std::vector<RecordRow>& rows, const std::string& unit) {
  const bool is_time = unit == "us" || unit == "ms";
  report::LineChart chart{
      .x = {.label = "size", .scale = report::AxisScale::kLog2, .format = size_text},
      .y = {.label = unit, .scale = is_time ? report::AxisScale::kLog10 : report::AxisScale::kLinear}};
  for (const RecordRow& row : rows) {
    series_named(chart.series, row.name)
        .points.push_back({.x = static_cast<double>(row.size), .y = row.value, .y_low = row.low, .y_high = row.high});
  }
  return chart;
}

report::BarChart bar_chart(const std::vector<RecordRow>& rows, const std::string& unit) {
  report::BarChart chart{.value = {.label = unit, .format = plain_number}};
  report::BarSeries bars{.name = "median"};
  for (const RecordRow& row : rows) {
    chart.categories.push_back(row.name);
    bars.values.push_back(row.value);
  }
  chart.series.push_back(std::move(bars));
  return chart;
}

// One chart for each unit: GFLOP/s and GOP/s share no axis. A single value needs none.
std::vector<report::HtmlBlock> charts_of(const RunRecord& record, const CollectiveFacts& facts) {
  std::vector<std::pair<std::string, std::vector<RecordRow>>> by_unit;
  for (const RecordRow& row : charted_rows(record, facts)) {
    auto found = std::find_if(by_unit.begin(), by_unit.end(), [&](const auto& one) { return one.first == row.unit; });
    if (found == by_unit.end()) found = by_unit.insert(found, {row.unit, {}});
    found->second.push_back(row);
  }
  std::vector<report::HtmlBlock> blocks;
  for (const auto& [unit, rows] : by_unit) {
    const std::string title = fmt::format("{}, run {}", record.benchmark, record.id);
    const bool sized = std::any_of(rows.begin(), rows.end(),
                                   [&](const RecordRow& row) { return row.size > 0 && row.size != rows[0].size; });
    if (sized) {
      report::LineChart chart = line_chart(rows, unit);
      chart.title = title;
      if (facts.limit && unit.starts_with("bus")) {
        chart.references = {{.value = *facts.limit, .label = "limit of the link"}};
      }
      blocks.emplace_back(std::move(chart));
    } else if (rows.size() > 1) {
      report::BarChart chart = bar_chart(rows, unit);
      chart.title = title;
      blocks.emplace_back(std::move(chart));
    }
  }
  return blocks;
}

// What was run, where, and how it ended: a row for each run.
report::Table overview_of(const std::vector<RunRecord>& records) {
  report::Table table{.columns = {{.header = "run", .align = report::TextAlign::kRight},
                                  {.header = "time"},
                                  {.header = "benchmark"},
                                  {.header = "host"},
                                  {.header = "result", .fit = report::ColumnFit::kShrinks}}};
  for (const RunRecord& record : records) {
    const std::string verdict = facts_of(record).verdict;
    table.rows.push_back({std::to_string(record.id), record.time, record.benchmark, record.host,
                          verdict.empty() ? record.summary : verdict});
  }
  return table;
}

report::Table table_of(const RunRecord& record) {
  const CollectiveFacts facts = facts_of(record);
  report::Table table{.columns = {{.header = "what"},
                                  {.header = "size", .align = report::TextAlign::kRight},
                                  {.header = "median", .align = report::TextAlign::kRight},
                                  {.header = "quartiles", .align = report::TextAlign::kRight}}};
  if (facts.kind) table.columns.push_back({.header = "bus bandwidth", .align = report::TextAlign::kRight});
  if (facts.limit) table.columns.push_back({.header = "of the limit", .align = report::TextAlign::kRight});
  for (const RecordRow& row : record.rows) {
    std::vector<std::string> cells = {
        row.name, row.size > 0 ? to_string(Bytes{row.size}) : "", value_text(row.value, row.unit),
        fmt::format("{} to {}", value_text(row.low, row.unit), value_text(row.high, row.unit))};
    const auto bandwidth = bus_bandwidth(facts, row);
    if (facts.kind) cells.push_back(bandwidth ? fmt::format("{:.3g} GB/s", *bandwidth) : "");
    if (facts.limit) cells.push_back(bandwidth ? fmt::format("{:.0f}%", *bandwidth / *facts.limit * 100) : "");
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The one number by which runs of a benchmark are compared over time: its best bus bandwidth, else its last row.
std::pair<double, std::string> headline(const RunRecord& record) {
  const CollectiveFacts facts = facts_of(record);
  double best = 0;
  for (const RecordRow& row : record.rows) best = std::max(best, bus_bandwidth(facts, row).value_or(0));
  if (best > 0) return {best, "best bus bandwidth (GB/s)"};
  return {record.rows.back().value, fmt::format("{} ({})", record.rows.back().name, record.rows.back().unit)};
}

// Runs that measured the same: what, where, over how many ranks.
std::string kind_of_run(const RunRecord& record) {
  const CollectiveFacts facts = facts_of(record);
  return fmt::format("{} on {}{}", record.benchmark, record.host,
                     facts.ranks > 0 ? fmt::format(", {} ranks", facts.ranks) : "");
}

// Runs are whole: no label at the marks between them.
std::string run_text(double run) { return run == std::floor(run) ? fmt::format("{:.0f}", run) : ""; }

std::vector<report::HtmlBlock> trends_of(const std::vector<RunRecord>& records) {
  std::map<std::string, std::vector<const RunRecord*>> kinds;
  for (const RunRecord& record : records) {
    if (!record.rows.empty()) kinds[kind_of_run(record)].insert(kinds[kind_of_run(record)].begin(), &record);
  }
  std::vector<report::HtmlBlock> blocks;
  for (const auto& [kind, runs] : kinds) {
    if (runs.size() < 2) continue;
    report::LineChart chart{.title = kind + " over time",
                            .x = {.label = "run", .format = run_text},
                            .y = {.label = headline(*runs.back()).second}};
    for (const RunRecord* run : runs) {
      series_named(chart.series, headline(*run).second)
          .points.push_back({.x = static_cast<double>(run->id), .y = headline(*run).first});
    }
    const CollectiveFacts newest = facts_of(*runs.back());
    if (newest.limit) chart.references = {{.value = *newest.limit, .label = "limit of the link"}};
    blocks.emplace_back(std::move(chart));
  }
  return blocks;
}

}  // namespace

report::LineChart bandwidth_chart(const CollectiveRun& run) {
  report::LineChart chart{.title = fmt::format("{} over {} ranks", comm::to_string(run.options.kind), run.ranks.size()),
                          .x = {.label = "size", .scale = report::AxisScale::kLog2, .format = size_text},
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

report::HtmlPage report_page(const std::vector<RunRecord>& records) {
  report::HtmlPage page{.title = kReportTitle};
  page.blocks.push_back(
      report::HtmlParagraph{fmt::format("{} run{}, newest first; written {}. Values are medians with quartiles. "
                                        "docs/performance.md explains each number.",
                                        records.size(), records.size() == 1 ? "" : "s", utc_now())});
  if (records.size() > 1) page.blocks.push_back(overview_of(records));
  if (std::vector<report::HtmlBlock> trends = trends_of(records); !trends.empty()) {
    page.blocks.push_back(report::HtmlHeading{"Over time"});
    std::ranges::move(trends, std::back_inserter(page.blocks));
  }
  for (const RunRecord& record : records) {
    const CollectiveFacts facts = facts_of(record);
    page.blocks.push_back(report::HtmlHeading{fmt::format("Run {}: {}", record.id, record.benchmark)});
    report::HtmlFacts shown{{{"time", record.time},
                             {"host", record.host},
                             {"processor", record.processor},
                             {"program", fmt::format("yoke {} ({})", record.version, record.commit)},
                             {"summary", record.summary}}};
    if (!facts.cluster.empty()) shown.facts.emplace_back("cluster", facts.cluster);
    if (!facts.nodes.empty()) shown.facts.emplace_back("nodes", facts.nodes);
    if (!facts.transport.empty()) shown.facts.emplace_back("transport", facts.transport);
    if (facts.limit) shown.facts.emplace_back("limit", fmt::format("{:.3g} GB/s", *facts.limit));
    if (!facts.verdict.empty()) shown.facts.emplace_back("verdict", facts.verdict);
    page.blocks.push_back(std::move(shown));
    if (record.rows.empty()) {
      page.blocks.push_back(
          report::HtmlNote{.tone = report::NoteTone::kWarning, .text = "This run ended before its first row."});
      continue;
    }
    std::ranges::move(charts_of(record, facts), std::back_inserter(page.blocks));
    report::Table table = table_of(record);
    if (table.rows.size() > kTableRowsShown) {
      page.blocks.push_back(report::HtmlFoldedTable{fmt::format("All {} rows", table.rows.size()), std::move(table)});
    } else {
      page.blocks.push_back(std::move(table));
    }
  }
  return page;
}

}  // namespace yoke::bench
