#include "yoke/cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/report/wrap.h"

namespace yoke::cli {
namespace {

// Every line but the first starts with `margin` blanks.
std::string wrap(std::string_view text, std::size_t margin) {
  return fmt::format("{}", fmt::join(report::wrap_text(text, std::min(output_width(), report::kTerminalWidth) - margin),
                                     "\n" + std::string(margin, ' ')));
}

std::string left_side(const OptionRow& row) {
  std::string names = row.name;
  if (const std::size_t comma = names.find(','); comma != std::string::npos) names.insert(comma + 1, " ");
  return row.value_name.empty() ? names : names + " " + row.value_name;
}

std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, std::min<std::size_t>(count_columns(row.first), 26));
  std::string out;
  for (const auto& [left, right] : rows) {
    const std::string padding(width + 2 - std::min(width, count_columns(left)), ' ');
    out += "  " + left;
    out += count_columns(left) > width ? "\n" + std::string(width + 4, ' ') : padding;
    out += wrap(right, width + 4) + "\n";
  }
  return out;
}

std::string option_lines(const OptionTable& options, bool positional) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const OptionRow& row : options.rows()) {
    const bool is_positional = row.kind != OptionRow::Kind::kFlag && row.kind != OptionRow::Kind::kValue;
    if (is_positional == positional) rows.emplace_back(left_side(row), help_of(row));
  }
  return two_columns(rows);
}

std::string usage_line(const std::vector<std::string>& path, const CommandRow& command, const OptionTable& options) {
  std::string line = fmt::format("{}", fmt::join(path, " "));
  if (!command.subcommands.empty()) line += command.prepare ? " [COMMAND]" : " COMMAND";
  bool has_options = false;
  for (const OptionRow& row : options.rows()) {
    switch (row.kind) {
      case OptionRow::Kind::kPositional:
        line += row.presence == Presence::kRequired ? " " + row.name : " [" + row.name + "]";
        break;
      case OptionRow::Kind::kPositionals:
        line += row.presence == Presence::kRequired ? " " + row.name + "…" : " [" + row.name + "…]";
        break;
      case OptionRow::Kind::kRest:
        line += " -- " + row.name + "…";
        break;
      default:
        has_options = true;
    }
  }
  return line + (has_options ? " [options]" : "");
}

OptionTable options_of(const CommandRow& command) {
  OptionTable options;
  if (command.prepare) command.prepare(options);
  return options;
}

std::string subcommand_lines(const std::vector<CommandRow>& commands) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const CommandRow& command : commands) rows.emplace_back(command.name, command.summary);
  return two_columns(rows);
}

}  // namespace

std::string help_of(const OptionRow& row) {
  const std::string range = to_string(row.range);
  return range.empty() ? row.help : fmt::format("{}; {}", row.help, range);
}

OptionTable shared_options(Session& session) {
  OptionTable options;
  options.value("--cluster", "FILE", "the cluster file (cluster.yaml in this folder unless given)",
                session.cluster_file);
  options.value("--lab", "NAME", "the cluster of this lab, instead of a file", session.lab);
  options.flag("--json", "print JSON instead of text", session.json);
  options.flag("-q,--quiet", "no progress, no notices", session.quiet);
  options.flag("-v,--verbose", "show each program run, file read, decision and time; -vv: the protocol too",
               session.verbose);
  return options;
}

std::string help_text(const std::vector<std::string>& path, const CommandRow& command) {
  const OptionTable options = options_of(command);
  std::string text = fmt::format("{}\n\n{}\n", usage_line(path, command, options), wrap(command.description, 0));
  if (!command.subcommands.empty()) text += "\nCommands:\n" + subcommand_lines(command.subcommands);
  if (const std::string lines = option_lines(options, true); !lines.empty()) text += "\nArguments:\n" + lines;
  if (const std::string lines = option_lines(options, false); !lines.empty()) text += "\nOptions:\n" + lines;
  Session unused;
  text += "\nOptions of every command:\n" + option_lines(shared_options(unused), false);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples)
    text += fmt::format("  {}\n      {}\n", example.line, wrap(example.says, 6));
  return text;
}

std::string overview_text(const std::vector<CommandRow>& commands) {
  Session unused;
  return "yoke COMMAND [options]\n\nOne model, several machines. Run `yoke` without arguments to see the current state "
         "and the next step.\n\nCommands:\n" +
         subcommand_lines(commands) + "\nOptions of every command:\n" + option_lines(shared_options(unused), false) +
         "\n`yoke COMMAND --help` shows details and examples; `yoke help exit` lists the exit statuses.\n";
}

namespace {

std::vector<std::pair<std::string, std::string>> exit_status_rows() {
  std::vector<std::pair<std::string, std::string>> rows = {{"0", "done"},
                                                           {"1", "findings, or results that differ"},
                                                           {"3", "done, but what had to be measured was not"},
                                                           {"141", "the reader closed the pipe"}};
  for (const ErrorCodeInfo& row : error_codes())
    rows.emplace_back(
        fmt::format("{}", row.exit_status),
        fmt::format("{}: {}{}", row.name, row.meaning,
                    row.code == ErrorCode::kUsage ? "; of 'yoke check' also: a node could not be read" : ""));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return std::stoi(a.first) < std::stoi(b.first); });
  return rows;
}

}  // namespace

std::string exit_status_text() { return two_columns(exit_status_rows()); }

Document exit_status_json() {
  Document list = Document::list();
  for (const auto& [status, meaning] : exit_status_rows()) {
    list.items.push_back(Document::map(
        {{"exit_status", Document::number(std::int64_t{std::stoi(status)})}, {"meaning", Document::string(meaning)}}));
  }
  return Document::map({{"exit_statuses", std::move(list)}});
}

}  // namespace yoke::cli
