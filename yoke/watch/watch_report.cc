#include "yoke/watch/watch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "yoke/watch/watch_text.h"

namespace yoke::watch {
namespace {

constexpr std::size_t kReportRows = 48 * History::kHour;
constexpr std::size_t kMaxPoints = 600;  // of a line: more cannot be seen

struct ChartRow {
  const char* title;
  const char* unit;
  double factor;
  bool (*wants)(const std::string& series);
};

bool is_rail(const std::string& series) { return series.starts_with("rail/"); }
bool ends_with_busy(const std::string& series) { return series.ends_with("/busy"); }
bool ends_with_clock(const std::string& series) { return series.ends_with("/clock"); }
bool ends_with_power(const std::string& series) { return series.ends_with("/power"); }
bool ends_with_temperature(const std::string& series) { return series.ends_with("/temperature"); }
bool is_nvlink(const std::string& series) { return series.find("/nvlink/") != std::string::npos; }

constexpr ChartRow kCharts[] = {
    {"Rails", "Gb/s", 1e-9, is_rail},
    {"Tokens", "tokens/s", 1, [](const std::string& series) { return series == "tokens"; }},
    {"Memory available", "GiB", 1.0 / (1 << 30), [](const std::string& series) { return series == "memory"; }},
    {"Processors", "% busy", 1, [](const std::string& series) { return series == "cpu"; }},
    {"GPUs", "% busy", 1, ends_with_busy},
    {"GPU clocks", "MHz", 1, ends_with_clock},
    {"GPU power", "W", 1, ends_with_power},
    {"GPU temperatures", "C", 1, ends_with_temperature},
    {"NVLink", "GB/s", 1e-9, is_nvlink},
};

// "spark-1 A in"
std::string line_name(const BoardNode& node, const std::string& series) {
  for (const BoardRail& rail : node.rails) {
    const std::string prefix = "rail/" + rail.interface + "/";
    if (!series.starts_with(prefix)) continue;
    return fmt::format("{} {} {}", node.name, rail.title.empty() ? rail.interface : rail.title,
                       series.substr(prefix.size()));
  }
  if (series.starts_with("gpu/")) {
    const std::string direction = is_nvlink(series) ? series.substr(series.rfind('/') + 1) : "";
    return fmt::format("{} GPU {}{}{}", node.name, series.substr(4, series.find('/', 4) - 4),
                       direction.empty() ? "" : " ", direction);
  }
  return node.name;
}

// The largest of each group: a short peak stays visible.
std::vector<report::ChartPoint> points_of(const History& history, const std::deque<float>& values, double factor,
                                          double from) {
  const std::size_t step = (values.size() + kMaxPoints - 1) / std::max<std::size_t>(1, kMaxPoints);
  std::vector<report::ChartPoint> points;
  for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(1, step)) {
    double most = std::nan("");
    for (std::size_t j = i; j < std::min(values.size(), i + std::max<std::size_t>(1, step)); ++j) {
      if (std::isfinite(values[j]) && !(most >= static_cast<double>(values[j]))) most = static_cast<double>(values[j]);
    }
    if (std::isfinite(most)) points.push_back({.x = (history.times()[i] - from) / 60, .y = most * factor});
  }
  return points;
}

report::Table finding_table(const Board& board) {
  report::Table table{.columns = {{.header = "from"},
                                  {.header = "to"},
                                  {.header = "severity"},
                                  {.header = "rule"},
                                  {.header = "what", .fit = report::ColumnFit::kShrinks},
                                  {.header = "evidence", .fit = report::ColumnFit::kShrinks}}};
  std::vector<TrackedFinding> all = board.findings().closed();
  const std::vector<TrackedFinding> open = board.findings().open();
  all.insert(all.end(), open.begin(), open.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const TrackedFinding& a, const TrackedFinding& b) { return *a.began < *b.began; });
  for (const TrackedFinding& tracked : all) {
    table.rows.push_back({local_time_text(*tracked.began), tracked.ended ? local_time_text(*tracked.ended) : "open",
                          std::string(spec::to_string(tracked.finding.severity)), tracked.finding.rule,
                          tracked.finding.what, tracked.finding.evidence});
  }
  return table;
}

report::Table idle_table(const Board& board) {
  report::Table table{.title = "Idle time",
                      .columns = {{.header = "node"},
                                  {.header = "watched", .align = report::TextAlign::kRight},
                                  {.header = "idle", .align = report::TextAlign::kRight}},
                      .footnotes = {"Idle: all GPUs, or without any the processors, below 5%."}};
  for (const BoardNode& node : board.nodes()) {
    const double share = node.watched_seconds > 0 ? node.idle_seconds / node.watched_seconds : 0;
    table.rows.push_back({node.name, age_text(node.watched_seconds), fmt::format("{:.0f}%", share * 100)});
  }
  return table;
}

std::vector<report::LineChart> report_charts(const Board& board, double from, std::size_t kinds) {
  std::vector<report::LineChart> charts;
  for (const ChartRow& row : std::span(kCharts).first(kinds)) {
    report::LineChart chart{.title = row.title, .x = {.label = "minutes"}, .y = {.label = row.unit}};
    for (const BoardNode& node : board.nodes()) {
      for (const auto& [series, values] : node.history.series()) {
        if (!row.wants(series)) continue;
        std::vector<report::ChartPoint> points = points_of(node.history, values, row.factor, from);
        if (points.size() > 1) chart.series.push_back({.name = line_name(node, series), .points = std::move(points)});
      }
    }
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

struct WholeRecord {
  Board board;
  double from = 0, to = 0;  // times of the first and the last observation
};

WholeRecord read_to_end(RecordReader& record) {
  WholeRecord whole{.board = Board(record.plan(), kReportRows)};
  for (bool is_first = true; const auto observation = record.next(); is_first = false) {
    if (is_first) whole.from = observation->time;
    whole.to = observation->time;
    whole.board.take(*observation);
  }
  return whole;
}

}  // namespace

std::vector<report::HtmlBlock> report_strip(RecordReader record) {
  const auto [board, from, to] = read_to_end(record);
  report::ChartSeries marks{.name = "a finding begins", .style = report::SeriesStyle::kScatter};
  for (const std::vector<TrackedFinding>& list : {board.findings().closed(), board.findings().open()}) {
    for (const TrackedFinding& tracked : list) marks.points.push_back({.x = (*tracked.began - from) / 60, .y = 0});
  }
  std::vector<report::HtmlBlock> blocks;
  for (report::LineChart& chart : report_charts(board, from, 3)) {
    if (!marks.points.empty()) chart.series.push_back(marks);
    blocks.emplace_back(std::move(chart));
  }
  report::Table findings = finding_table(board);
  if (!findings.rows.empty()) blocks.emplace_back(std::move(findings));
  return blocks;
}

report::HtmlPage report_page(RecordReader record) {
  const auto [board, from, to] = read_to_end(record);
  report::HtmlPage page{.title = fmt::format("Watch of {}", record.plan().cluster.name)};
  page.blocks.push_back(report::HtmlFacts{{{"from", local_time_text(from)},
                                           {"to", local_time_text(to)},
                                           {"time", age_text(to - from)},
                                           {"nodes", std::to_string(board.nodes().size())},
                                           {"samples every", to_string(record.plan().interval)}}});
  if (record.damaged() > 0) {
    page.blocks.push_back(report::HtmlNote{.tone = report::NoteTone::kWarning,
                                           .text = fmt::format("{} damaged lines were left out.", record.damaged())});
  }
  page.blocks.push_back(report::HtmlHeading{"Findings"});
  report::Table findings = finding_table(board);
  if (findings.rows.empty()) {
    page.blocks.push_back(report::HtmlNote{.tone = report::NoteTone::kGood, .text = "No findings."});
  } else {
    page.blocks.push_back(std::move(findings));
  }
  page.blocks.push_back(idle_table(board));
  for (report::LineChart& chart : report_charts(board, from, std::size(kCharts)))
    page.blocks.push_back(std::move(chart));
  if (!board.marks().empty()) {
    report::Table marks{.title = "Jobs", .columns = {{.header = "at"}, {.header = "what"}}};
    for (const BoardMark& mark : board.marks()) marks.rows.push_back({local_time_text(mark.time), mark.text});
    page.blocks.push_back(std::move(marks));
  }
  return page;
}

}  // namespace yoke::watch
