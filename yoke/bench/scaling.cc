#include "yoke/bench/scaling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/bench/shape.h"
#include "yoke/report/table.h"
#include "yoke/report/text_plot.h"

namespace yoke::bench {

std::vector<int> parse_rank_counts(const std::string& text) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::kUsage, fmt::format("--ranks cannot be '{}': {}", printable(text, 40), why),
                "give numbers of ranks from small to large, such as 1,2,4");
  };
  std::vector<int> counts;
  for (const std::string& word : split(text, ',')) {
    int count = 0;
    const std::string_view digits = trim(word);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (failure != std::errc{} || end != digits.data() + digits.size()) refuse("not a list of numbers");
    if (count < 1 || count > 1024) refuse("a number is outside 1 to 1024");
    if (!counts.empty() && count <= counts.back()) refuse("the numbers do not rise");
    counts.push_back(count);
  }
  return counts;
}

std::vector<ScalingRow> scaling_rows(const std::vector<CollectiveRun>& runs) {
  std::vector<ScalingRow> rows;
  std::map<std::int64_t, double> base;  // by size, of the fewest ranks above one
  for (const CollectiveRun& run : runs) {
    const int ranks = static_cast<int>(run.ranks.size());
    for (const CollectiveRow& row : run.rows) {
      const double time = row.out_of_place.stats.p50;
      const Bandwidth bandwidth = bandwidth_of(run.options.kind, static_cast<std::size_t>(row.count),
                                               tensor::size_of(run.options.types.front()), ranks, time / 1e6);
      ScalingRow scaled{.size = row.size, .ranks = ranks, .time = time, .bus_bandwidth = bandwidth.bus};
      if (ranks > 1) {
        const double first = base.try_emplace(row.size, bandwidth.bus).first->second;
        if (first > 0) scaled.efficiency = bandwidth.bus / first;
      }
      rows.push_back(scaled);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  return rows;
}

std::string scaling_text(const std::vector<CollectiveRun>& runs) {
  report::Table table{
      .title = fmt::format("Scaling of {}", comm::to_string(runs.front().options.kind)),
      .columns = {{.header = "size", .align = report::TextAlign::kRight},
                  {.header = "ranks", .align = report::TextAlign::kRight},
                  {.header = "time", .align = report::TextAlign::kRight},
                  {.header = "bus bandwidth", .align = report::TextAlign::kRight},
                  {.header = "efficiency", .align = report::TextAlign::kRight}},
      .footnotes = {"efficiency: bus bandwidth against that of the fewest ranks above one; 100% is ideal"}};
  report::LineChart chart{
      .title = "Bus bandwidth over ranks", .x = {.label = "ranks"}, .y = {.label = "GB/s", .include = {0}}};
  for (const ScalingRow& row : scaling_rows(runs)) {
    table.rows.push_back({yoke::to_string(Bytes{row.size}), fmt::format("{}", row.ranks),
                          yoke::to_string(Seconds{row.time / 1e6}),
                          row.ranks > 1 ? fmt::format("{:.3f} GB/s", row.bus_bandwidth) : "-",
                          row.efficiency ? fmt::format("{:.0f}%", *row.efficiency * 100) : "-"});
    if (row.ranks == 1) continue;
    const std::string name = yoke::to_string(Bytes{row.size});
    if (chart.series.empty() || chart.series.back().name != name) chart.series.push_back({.name = name});
    chart.series.back().points.push_back({.x = static_cast<double>(row.ranks), .y = row.bus_bandwidth});
  }
  std::string text = report::render_text(table);
  const bool plottable = std::any_of(chart.series.begin(), chart.series.end(),
                                     [](const report::ChartSeries& series) { return series.points.size() > 1; });
  return plottable ? text + "\n" + report::render_text(chart) : text;
}

Document scaling_json(const std::vector<CollectiveRun>& runs) {
  Document rows = Document::list();
  for (const ScalingRow& row : scaling_rows(runs)) {
    rows.items.push_back(
        Document::map({{"size", Document::number(row.size)},
                       {"ranks", Document::number(std::int64_t{row.ranks})},
                       {"time", Document::number(row.time)},
                       {"bus_bandwidth", Document::number(row.bus_bandwidth)},
                       {"efficiency", row.efficiency ? Document::number(*row.efficiency) : Document::null()}}));
  }
  Document all = Document::list();
  for (const CollectiveRun& run : runs) all.items.push_back(to_json(run));
  return Document::map({{"scaling", std::move(rows)}, {"runs", std::move(all)}});
}

RunRecord scaling_record(const std::vector<CollectiveRun>& runs) {
  RunRecord record = new_record("scaling", to_json(runs.front().options));
  std::vector<std::size_t> ranks;
  for (const CollectiveRun& run : runs) {
    ranks.push_back(run.ranks.size());
    for (const CollectiveRow& row : run.rows) {
      const SampleStats& stats = row.out_of_place.stats;
      record.rows.push_back({.name = fmt::format("{} ranks", run.ranks.size()),
                             .size = row.size,
                             .value = stats.p50,
                             .low = stats.p25,
                             .high = stats.p75,
                             .unit = "us"});
    }
  }
  record.summary = fmt::format("{} at {} ranks", comm::to_string(runs.front().options.kind), fmt::join(ranks, ", "));
  return record;
}

}  // namespace yoke::bench
