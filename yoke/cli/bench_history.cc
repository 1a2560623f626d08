// yoke bench history, compare and report: what was measured before.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/base/terminal.h"
#include "yoke/bench/compare.h"
#include "yoke/bench/history.h"
#include "yoke/bench/report_page.h"
#include "yoke/cli/commands.h"
#include "yoke/report/table.h"

namespace yoke::cli {
namespace {

struct HistoryArguments {
  int limit = 20;
  std::string a, b;
  std::filesystem::path file;
};

constexpr NumberRange kLimit{1, 1'000'000};
constexpr std::size_t kWideHistory = 110;  // columns

std::unique_ptr<bench::History> open_history() {
  auto history = std::make_unique<bench::History>(bench::history_file());
  if (history->set_aside()) log(LogLevel::kWarning, "{}", *history->set_aside());
  return history;
}

int list_runs(Session& session, const HistoryArguments& arguments) {
  const std::vector<bench::RunRecord> records = open_history()->recent(arguments.limit);
  if (session.json) {
    Document runs = Document::list();
    for (const bench::RunRecord& record : records) runs.items.push_back(bench::to_json(record));
    session.print_json(Document::map({{"runs", std::move(runs)}}));
    return kExitOk;
  }
  if (records.empty()) {
    session.print("Nothing was measured yet. Next: yoke bench all-reduce\n");
    return kExitOk;
  }
  // What was measured comes before which commit did: a narrow terminal has no room for both.
  const bool wide = output_width(120) >= kWideHistory;
  report::Table table{.columns = {{.header = "run", .align = report::TextAlign::kRight},
                                  {.header = "time (UTC)"},
                                  {.header = "benchmark"},
                                  {.header = "host", .fit = report::ColumnFit::kShrinks},
                                  {.header = "summary", .fit = report::ColumnFit::kShrinks}}};
  if (wide) table.columns.insert(table.columns.end() - 1, {.header = "commit"});
  for (const bench::RunRecord& record : records) {
    std::string time = record.time.substr(0, 16);  // 2026-11-18T09:12:54Z without seconds
    std::replace(time.begin(), time.end(), 'T', ' ');
    table.rows.push_back({fmt::format("{}", record.id), time, record.benchmark, record.host, record.summary});
    if (wide) table.rows.back().insert(table.rows.back().end() - 1, record.commit);
  }
  session.print(report::render_text(table, report::for_output(120)));
  return kExitOk;
}

int compare(Session& session, const HistoryArguments& arguments) {
  const auto history = open_history();
  const bench::RunRecord a = history->find(arguments.a);
  const bench::RunRecord b = history->find(arguments.b);
  const bench::Comparison comparison = bench::compare_runs(a, b);
  if (session.json) {
    Document document = Document::map({{"a", Document::number(a.id)}, {"b", Document::number(b.id)}});
    for (auto& [key, value] : bench::to_json(comparison).fields) document.add(key, value);
    session.print_json(document);
  } else {
    session.print(bench::comparison_text(a, b, comparison));
  }
  return comparison.rows.empty() ? kExitFindings : kExitOk;
}

// A page of before is replaced; anything else is somebody's work.
void refuse_to_replace(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  const auto there = try_to([&] { return read_file(file, Bytes{64LL << 20}); });
  if (there && (there->empty() || there->find(bench::kReportTitle) != std::string::npos)) return;
  throw Error(ErrorCode::kConflict, fmt::format("'{}' is there already, and is no page of yoke's", file.native()),
              "name another file: -o FILE");
}

int report(Session& session, const HistoryArguments& arguments) {
  const std::vector<bench::RunRecord> records = open_history()->recent(arguments.limit);
  if (records.empty())
    throw Error(ErrorCode::kNotFound, "there is nothing to report: the history is empty",
                "measure something first, such as 'yoke bench all-reduce'");
  refuse_to_replace(arguments.file);
  write_file_atomically(arguments.file, report::render_html(bench::report_page(records)));
  if (session.json) {
    session.print_json(Document::map({{"file", Document::string(arguments.file.native())},
                                      {"runs", Document::number(static_cast<std::int64_t>(records.size()))}}));
  } else {
    session.print(fmt::format("Wrote {} with {} run{}.\n", arguments.file.native(), records.size(),
                              records.size() == 1 ? "" : "s"));
  }
  return kExitOk;
}

CommandRow history_command() {
  return {.name = "history",
          .summary = "list the runs that were measured, newest first",
          .description =
              "Lists the runs of the history: when, what, where, by which commit. Every run of yoke bench is "
              "kept there unless --no-history is given.",
          .examples = {{"yoke bench history", "the last twenty"}, {"yoke bench history --limit 1 --json", "the last"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<HistoryArguments>();
            table.value("--limit", "N", "at most so many (20)", arguments->limit, kLimit);
            return [arguments](Session& session) { return list_runs(session, *arguments); };
          }};
}

CommandRow compare_command() {
  return {.name = "compare",
          .summary = "compare two runs of the history, row by row",
          .description =
              "Compares two runs by their medians. A row is called faster or slower only where the quartiles "
              "of both runs do not overlap and the medians differ by more than 5%.",
          .examples = {{"yoke bench compare last-1 last", "the two newest"},
                       {"yoke bench compare 12 40 --json", "by number, for a script"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<HistoryArguments>();
            table.positional("A", "a run: its number, last, last-1, …", arguments->a, Presence::kRequired);
            table.positional("B", "the run to compare with it", arguments->b, Presence::kRequired);
            return [arguments](Session& session) { return compare(session, *arguments); };
          }};
}

CommandRow report_command() {
  return {.name = "report",
          .summary = "write the last runs as one HTML page",
          .description = "Writes the last runs with charts and tables as one HTML file that needs nothing else.",
          .examples = {{"yoke bench report -o report.html", "the last twenty runs"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<HistoryArguments>();
            arguments->file = "report.html";
            table.value("-o,--output", "FILE", "the page (report.html); a page of before is replaced", arguments->file);
            table.value("--limit", "N", "at most so many runs (20)", arguments->limit, kLimit);
            return [arguments](Session& session) { return report(session, *arguments); };
          }};
}

}  // namespace

std::vector<CommandRow> bench_history_commands() { return {history_command(), compare_command(), report_command()}; }

}  // namespace yoke::cli
