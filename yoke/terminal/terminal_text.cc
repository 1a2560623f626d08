#include "yoke/terminal/terminal_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/report/wrap.h"

namespace yoke::terminal {
namespace {

constexpr std::string_view kRed = "\x1b[1;31m", kYellow = "\x1b[1;33m", kGreen = "\x1b[1;32m", kBold = "\x1b[1m",
                           kPlain = "\x1b[0m";

constexpr auto kAsciiForms = std::to_array<std::pair<std::string_view, std::string_view>>({{"…", "..."},
                                                                                           {"–", "-"},
                                                                                           {"—", "-"},
                                                                                           {"→", "->"},
                                                                                           {"×", "x"},
                                                                                           {"≥", ">="},
                                                                                           {"≤", "<="},
                                                                                           {"µ", "u"},
                                                                                           {"─", "-"},
                                                                                           {"═", "="}});

// What somebody may copy: broken by us it would no longer be one line to the shell.
bool is_command(std::string_view line) {
  const std::string_view words = trim(line);
  for (const std::string_view start : {"yoke ", "sudo ", "$ ", "Next: ", "ssh ", "echo "}) {
    if (words.starts_with(start)) return true;
  }
  return false;
}

// Where the text of a line begins: behind its indentation, a label in a column ("  fix        …") or a bullet.
std::size_t hanging_indent(std::string_view line, std::size_t columns) {
  const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  std::size_t indent = start;
  if (line.substr(start).starts_with("- ")) indent = start + 2;
  if (const std::size_t gap = line.find("  ", start); start > 0 && gap != std::string_view::npos && gap < 32) {
    indent = std::min(line.find_first_not_of(' ', gap), line.size());
  }
  return indent < columns / 2 ? indent : 0;
}

// The table of nccl-tests (bench/perf_table.h) has 118 columns, of which 12 to 51 say count, type, redop and root: the
// same in every row, or told by the size.
constexpr std::size_t kPerfWidth = 118, kPerfFrom = 12, kPerfTo = 52;

bool is_perf_row(std::string_view line) {
  if (line.size() < kPerfTo) return false;
  if (line.front() == '#') {
    const std::size_t group = line.find("out-of-place");
    return (group != std::string_view::npos && group > kPerfTo && line.find("buffers") == std::string_view::npos) ||
           line.find(" redop ") < kPerfTo || line.find("(elements)") < kPerfTo;
  }
  const std::string_view size = trim(line.substr(0, kPerfFrom)), root = trim(line.substr(46, kPerfTo - 46));
  return !size.empty() && size.find_first_not_of("0123456789") == std::string_view::npos && !root.empty() &&
         root.find_first_not_of("-0123456789") == std::string_view::npos;
}

std::string narrow_perf_row(std::string_view line) {
  std::string narrow(line.substr(0, kPerfFrom));
  narrow += line.substr(kPerfTo);
  narrow.erase(narrow.find_last_not_of(' ') + 1);
  if (line.find(" redop ") == std::string_view::npos) return narrow;
  return "# Below 118 columns count, type, redop and root are left out.\n" + narrow;
}

std::string fold_line(std::string_view line, std::size_t columns) {
  const bool has_group = line.find("out-of-place") != std::string_view::npos || count_columns(line) > columns;
  if (columns < kPerfWidth && columns >= kPerfWidth - (kPerfTo - kPerfFrom) && has_group && is_perf_row(line)) {
    return narrow_perf_row(line);
  }
  if (count_columns(line) <= columns || is_command(line)) return std::string(line);
  // A comment stays one: programs that read the table skip lines by their first character.
  const std::string margin = line.starts_with("# ") ? "#   " : std::string(hanging_indent(line, columns), ' ');
  std::string out, rest(line);
  while (count_columns(rest) > columns) {
    const std::vector<std::string> lines = report::wrap_text(rest, columns);
    if (lines.size() < 2) break;
    out += lines.front() + "\n";
    // wrap_text drops the spaces at the break, and nothing else.
    rest.erase(0, lines.front().size());
    rest = margin + std::string(trim(rest));
    if (rest.size() == margin.size()) return out.substr(0, out.size() - 1);
  }
  return out + rest;
}

std::string_view verdict_colour(std::string_view line) {
  if (line.find("healthy") != std::string_view::npos) return kGreen;
  return line.find("finding") != std::string_view::npos ? kRed : kYellow;
}

// "error rail-degraded: spark-1": the word before, and then a rule's name.
bool is_finding(std::string_view line, std::string_view severity) {
  if (!line.starts_with(severity) || line.size() < severity.size() + 2 || line[severity.size()] != ' ') return false;
  const std::string_view rest = line.substr(severity.size() + 1);
  const std::string_view name = rest.substr(0, rest.find(':'));
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

std::string paint(std::string_view line, std::string_view colour, std::size_t length) {
  return std::string(colour).append(line.substr(0, length)).append(kPlain).append(line.substr(length));
}

std::string coloured(std::string_view line) {
  for (const auto& [severity, colour] :
       {std::pair<std::string_view, std::string_view>{"error", kRed}, {"warning", kYellow}}) {
    if (is_finding(line, severity)) return paint(line, colour, severity.size());
  }
  if (line.starts_with("Verdict: ")) return paint(line, verdict_colour(line), line.size());
  for (const std::string_view start : {"Clean", "No problems found"}) {
    if (line.starts_with(start)) return paint(line, kGreen, start.size());
  }
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (digits != 0 && digits != std::string_view::npos) {
    const std::string_view rest = line.substr(digits);
    if (rest.starts_with(" finding: ") || rest.starts_with(" findings: ")) {
      return paint(line, rest.find(": 0 errors") == std::string_view::npos ? kRed : kYellow, digits + rest.find(':'));
    }
  }
  for (const std::string_view label : {"You have:", "Next:"}) {
    if (line.starts_with(label)) return paint(line, kBold, label.size());
  }
  return std::string(line);
}

std::string in_ascii(std::string text) {
  for (const auto& [character, form] : kAsciiForms) {
    for (std::size_t at = 0; (at = text.find(character, at)) != std::string::npos; at += form.size()) {
      text.replace(at, character.size(), form);
    }
  }
  return text;
}

template <class Change>
std::string each_line(std::string_view text, const Change& change) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += change(text.substr(0, end));
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

TerminalKind terminal_kind(int fd) {
  return {.columns = terminal_columns(fd).value_or(80), .colour = takes_colour(fd), .utf8 = locale_is_utf8()};
}

std::string fold_lines(std::string_view text, std::size_t columns) {
  return each_line(text, [&](std::string_view line) { return fold_line(line, columns); });
}

std::string for_terminal(std::string_view text, const TerminalKind& terminal) {
  std::string folded = fold_lines(terminal.utf8 ? std::string(text) : in_ascii(std::string(text)), terminal.columns);
  return terminal.colour ? each_line(folded, coloured) : folded;
}

}  // namespace yoke::terminal
