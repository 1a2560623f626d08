// What yoke prints about itself: `yoke version`, `yoke man`, `yoke explain`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/build_info.h"
#include "yoke/base/embedded.h"
#include "yoke/base/error.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/check/live.h"
#include "yoke/check/rule.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/help_text.h"
#include "yoke/report/table.h"

namespace yoke::cli {

// yoke version: what this program is.

namespace {

int run_version(Session& session) {
  const BuildInfo build = build_info();
  const std::string kind = build.sanitizers.empty() ? std::string(build.build_type)
                                                    : fmt::format("{}, {}", build.build_type, build.sanitizers);
  if (session.json) {
    session.print_json(Document::map({{"version", Document::string(std::string(build.version))},
                                      {"commit", Document::string(std::string(build.commit))},
                                      {"compiler", Document::string(std::string(build.compiler))},
                                      {"build", Document::string(kind)},
                                      {"processor", Document::string(std::string(build.processor))},
                                      {"cuda", Document::string(std::string(build.cuda))}}));
  } else {
    const bool kernels = build.cuda != "no" && build.cuda.find(" 0 kernel files") == std::string_view::npos;
    session.print(fmt::format("yoke {} ({})\nbuilt with {} for {}, {}\ncuda: {}{}\n", build.version, build.commit,
                              build.compiler, build.processor, kind, build.cuda,
                              kernels ? "" : "; no GPU kernels: models run on the CPU"));
  }
  return kExitOk;
}

}  // namespace

CommandRow version_command() {
  return {.name = "version",
          .summary = "print version, commit, compiler and what this build contains",
          .description = "Prints what this program was built from and what it contains.",
          .examples = {{"yoke version", "for people"}, {"yoke version --json", "for scripts"}},
          .prepare = [](OptionTable&) { return run_version; }};
}

// The man page, in groff's man macros, from the table of commands.

namespace {

// Backslashes and hyphens mean something to groff, and so does a dot or quote at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with("…")) {
      out += "\\[u2026]";
      i += std::string_view("…").size() - 1;
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

void add_options(const OptionTable& options, std::string& out) {
  for (const OptionRow& row : options.rows()) {
    out += fmt::format(".TP\n.B {}\n{}\n", roff(row.value_name.empty() ? row.name : row.name + " " + row.value_name),
                       roff(help_of(row)));
  }
}

void add_command(const std::string& path, const CommandRow& command, std::string& out) {
  const std::string whole = path + " " + command.name;
  out += fmt::format(".SS {}\n{}\n", roff(whole), roff(command.description));
  OptionTable options;
  if (command.prepare) command.prepare(options);
  add_options(options, out);
  for (const Example& example : command.examples) {
    out += fmt::format(".PP\n.nf\n{}\n.fi\n.RS\n{}\n.RE\n", roff(example.line), roff(example.says));
  }
  for (const CommandRow& sub : command.subcommands) add_command(whole, sub, out);
}

}  // namespace

std::string man_page(const std::vector<CommandRow>& commands) {
  std::string out = fmt::format(".TH YOKE 1 \"\" \"yoke {}\" \"User Commands\"\n", build_info().version);
  out += ".SH NAME\nyoke \\- one model, several machines\n.SH SYNOPSIS\n.B yoke\n.I COMMAND\n[options]\n.SH COMMANDS\n";
  for (const CommandRow& command : commands) add_command("yoke", command, out);
  out += ".SH OPTIONS OF EVERY COMMAND\n";
  Session unused;
  add_options(shared_options(unused), out);
  out += ".SH EXIT STATUS\n.nf\n" + roff(exit_status_text()) + ".fi\n";
  out += ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nwhen set, nothing is coloured\n";
  return out;
}

// yoke explain RULE: what a rule of `yoke check` looks for, from the table of rules and from docs/checks.md, which the
// program carries.

namespace {

constexpr std::string_view kChecksPage = "docs/checks.md";

std::string_view checks_page() {
  const auto page = embedded_file(kChecksPage);
  if (!page) throw Error(ErrorCode::kInternal, "docs/checks.md is not in this program", "please report this");
  return *page;
}

// The cells of the rule's row in the page's table; empty where the page has none.
std::vector<std::string> row_of(std::string_view rule) {
  for (const std::string& line : split(checks_page(), '\n')) {
    if (!line.starts_with(fmt::format("| `{}` |", rule))) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, '|')) cells.emplace_back(trim(cell));
    return cells;
  }
  return {};
}

// Paragraphs and list items of the page, outside of its tables, that name the rule.
std::vector<std::string> paragraphs_about(std::string_view rule) {
  std::vector<std::string> found;
  std::string paragraph;
  const auto end = [&] {
    if (paragraph.find(fmt::format("`{}`", rule)) != std::string::npos) found.push_back(paragraph);
    paragraph.clear();
  };
  bool is_code = false;
  for (const std::string& line : split(checks_page(), '\n')) {
    if (line.starts_with("```")) is_code = !is_code;
    if (line.empty() || line.starts_with("|") || line.starts_with("#") || line.starts_with("```") || is_code) {
      end();
      continue;
    }
    if (line.starts_with("- ")) end();
    paragraph += (paragraph.empty() ? "" : " ") + std::string(trim(line));
  }
  end();
  return found;
}

// "made, lab `rail-down`" names a fault of `yoke lab fault`.
std::optional<std::string> lab_fault_of(const std::vector<std::string>& cells) {
  constexpr std::size_t kFixture = 7;
  if (cells.size() <= kFixture) return std::nullopt;
  const std::size_t at = cells[kFixture].find("lab `");
  if (at == std::string::npos) return std::nullopt;
  const std::string rest = cells[kFixture].substr(at + 5);
  return rest.substr(0, rest.find('`'));
}

const check::Rule& find_rule(const std::string& name) {
  const auto rules = check::rule_table();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const check::Rule& rule) { return rule.name == name; });
  if (found != rules.end()) return *found;
  std::vector<std::string> names;
  for (const check::Rule& rule : rules) names.emplace_back(rule.name);
  const auto near = nearest(name, names);
  throw Error(ErrorCode::kNotFound, fmt::format("there is no rule '{}'", printable(name, 60)),
              near ? fmt::format("did you mean '{}'?", *near) : "'yoke explain' lists them");
}

std::string as_text(const check::Rule& rule) {
  constexpr std::size_t kSource = 6;
  const std::vector<std::string> cells = row_of(rule.name);
  std::vector<std::pair<std::string, std::string>> rows = {{"needs", check::needs_text(rule)}};
  if (!rule.explains.empty()) {
    rows.emplace_back("explains", fmt::format("{} (if both are found, only {} is reported)", rule.explains, rule.name));
  }
  if (cells.size() > kSource && cells[kSource] != "-") rows.emplace_back("source", cells[kSource]);
  if (const auto fault = lab_fault_of(cells)) {
    rows.emplace_back("try it", fmt::format("yoke lab up; yoke lab fault {} --node 2; yoke check", *fault));
  }
  std::string out = fmt::format("{} ({}): {}\n\n", rule.name, to_string(rule.severity), rule.about);
  const std::size_t width = output_width();
  for (const auto& [label, text] : rows) {
    bool first = true;
    for (const std::string& line : report::wrap_text(text, width - 13)) {
      out += fmt::format("  {:<9}  {}\n", std::exchange(first, false) ? label : "", line);
    }
  }
  for (const std::string& paragraph : paragraphs_about(rule.name))
    out += "\n" + report::wrapped_paragraph(paragraph, width);
  return out + "\nA finding shows its evidence, what it costs and the fix. All rules: docs/checks.md\n";
}

Document as_json(const check::Rule& rule) {
  Document paragraphs = Document::list();
  for (const std::string& one : paragraphs_about(rule.name)) paragraphs.items.push_back(Document::string(one));
  return Document::map({{"rule", Document::string(std::string(rule.name))},
                        {"severity", Document::string(std::string(to_string(rule.severity)))},
                        {"about", Document::string(std::string(rule.about))},
                        {"needs", Document::string(check::needs_text(rule))},
                        {"explains", Document::string(std::string(rule.explains))},
                        {"text", std::move(paragraphs)}});
}

// Of a rule that only 'yoke watch' has; nothing for others.
std::optional<Document> live_rule_json(const std::string& name) {
  for (const check::LivePace& pace : check::live_paces()) {
    if (pace.about.empty() || pace.rule != name) continue;
    return Document::map({{"rule", Document::string(name)},
                          {"about", Document::string(std::string(pace.about))},
                          {"raised_after_seconds", Document::number(pace.raise.value)},
                          {"cleared_after_seconds", Document::number(pace.clear.value)}});
  }
  return std::nullopt;
}

int run_explain(Session& session, const std::string& name) {
  if (const auto live = live_rule_json(name)) {
    if (session.json) {
      session.print_json(*live);
    } else {
      const check::LivePace pace = check::live_pace(name);
      session.print(
          fmt::format("{}: {}\n\n'yoke watch' reports it when it has lasted {:.0f} s, and its end when it has "
                      "been gone for {:.0f} s. docs/watch.md lists these rules.\n",
                      name, pace.about, pace.raise.value, pace.clear.value));
    }
    return kExitOk;
  }
  if (!name.empty()) {
    const check::Rule& rule = find_rule(name);
    if (session.json) {
      session.print_json(as_json(rule));
    } else {
      session.print(as_text(rule));
    }
    return kExitOk;
  }
  report::Table table{
      .columns = {{.header = "rule"}, {.header = "severity"}, {.header = "about", .fit = report::ColumnFit::kShrinks}}};
  Document list = Document::list();
  for (const check::Rule& rule : check::rule_table()) {
    table.rows.push_back({std::string(rule.name), std::string(to_string(rule.severity)), std::string(rule.about)});
    list.items.push_back(as_json(rule));
  }
  if (session.json) {
    session.print_json(Document::map({{"rules", std::move(list)}}));
  } else {
    session.print(report::render_text(table));
  }
  return kExitOk;
}

}  // namespace

CommandRow explain_command() {
  return {
      .name = "explain",
      .summary = "what a rule of yoke check looks for, and why",
      .description =
          "Prints what a rule of 'yoke check' looks for, what it needs to know, which findings it explains, where it "
          "comes from, and how to see it in a lab. Without RULE it lists all rules.",
      .examples = {{"yoke explain mtu-differs", "the rule of a finding"}, {"yoke explain", "all rules"}},
      .prepare = [](OptionTable& table) -> Action {
        auto names = std::make_shared<std::vector<std::string>>();
        std::vector<std::string> rules;
        for (const check::Rule& rule : check::rule_table()) rules.emplace_back(rule.name);
        table.positionals("RULE", "the name of a rule, as a finding shows it", *names, Presence::kOptional,
                          std::move(rules));
        return [names](Session& session) {
          if (names->size() > 1) throw Error(ErrorCode::kUsage, "one rule at a time", "yoke explain mtu-differs");
          return run_explain(session, names->empty() ? "" : names->front());
        };
      }};
}

}  // namespace yoke::cli
