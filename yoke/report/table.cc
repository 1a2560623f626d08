#include "yoke/report/table.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "yoke/base/check.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"

namespace yoke::report {
namespace {

constexpr std::size_t kGap = 2;

void check_shape(const Table& table) {
  for (const auto& row : table.rows) YOKE_CHECK_EQ(row.size(), table.columns.size());
}

std::vector<std::string> headers(const Table& table) {
  std::vector<std::string> texts;
  for (const TableColumn& column : table.columns) texts.push_back(column.header);
  return texts;
}

bool has_header(const Table& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [](const auto& c) { return !c.header.empty(); });
}

// A longer word, such as a path, may be broken before the columns beside it are squeezed to their least.
constexpr std::size_t kWordKept = 20;

// What one column asks for: all on one line; no ordinary word broken; and the least that can be read.
struct ColumnNeeds {
  std::size_t natural = 0;
  std::size_t word = 0;
  std::size_t least = 0;
};

void take_into_account(const std::string& cell, ColumnNeeds& needs) {
  for (const std::string& line : wrap_text(cell, kUnlimitedWidth)) {
    needs.natural = std::max(needs.natural, count_columns(line));
    for (const std::string& word : split(line, ' ')) needs.word = std::max(needs.word, count_columns(word));
  }
}

std::vector<ColumnNeeds> measure(const Table& table) {
  std::vector<ColumnNeeds> needs(table.columns.size());
  for (std::size_t c = 0; c < needs.size(); ++c) {
    take_into_account(table.columns[c].header, needs[c]);
    for (const auto& row : table.rows) take_into_account(row[c], needs[c]);
    needs[c].natural = std::max<std::size_t>(needs[c].natural, 1);
    needs[c].least = std::min(needs[c].natural, kMinColumnWidth);
    needs[c].word = std::clamp(needs[c].word, needs[c].least, std::max(needs[c].least, kWordKept));
  }
  return needs;
}

// Takes columns away from the widest until the table fits or every one is at its floor.
void shrink(std::vector<std::size_t>& widths, const std::vector<std::size_t>& floors, std::size_t room) {
  while (std::accumulate(widths.begin(), widths.end(), std::size_t{0}) > room) {
    std::size_t widest_column = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] <= floors[c]) continue;
      if (widest_column == widths.size() || widths[c] > widths[widest_column]) widest_column = c;
    }
    if (widest_column == widths.size()) return;
    --widths[widest_column];
  }
}

// Ordinary words are broken only after every column is as narrow as its longest one.
std::vector<std::size_t> choose_widths(const Table& table, const TableOptions& options) {
  std::vector<std::size_t> widths, word_floors, floors;
  const std::vector<ColumnNeeds> needs = measure(table);
  for (std::size_t c = 0; c < needs.size(); ++c) {
    const bool shrinks = table.columns[c].fit == ColumnFit::kShrinks;
    widths.push_back(needs[c].natural);
    word_floors.push_back(shrinks ? needs[c].word : needs[c].natural);
    floors.push_back(shrinks ? needs[c].least : needs[c].natural);
  }
  const std::size_t gaps = kGap * (widths.size() - 1);
  const std::size_t room = options.width > gaps ? options.width - gaps : 0;
  shrink(widths, word_floors, room);
  shrink(widths, floors, room);
  if (options.overflow == TableOptions::Overflow::kShrinksAll) {
    for (std::size_t c = 0; c < needs.size(); ++c) floors[c] = needs[c].least;
    shrink(widths, floors, room);
  }
  return widths;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// One row, on as many lines as its highest cell needs.
std::string render_row(const Table& table, const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths) {
  std::vector<std::vector<std::string>> wrapped;
  std::size_t height = 0;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    wrapped.push_back(wrap_text(cells[c], widths[c]));
    height = std::max(height, wrapped.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < height; ++i) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      const std::string_view part = i < wrapped[c].size() ? std::string_view(wrapped[c][i]) : std::string_view();
      line += pad_text(part, widths[c], table.columns[c].align);
    }
    text += without_trailing_spaces(std::move(line)) + "\n";
  }
  return text;
}

std::string render_rule(const std::vector<std::size_t>& widths) {
  std::string rule;
  for (std::size_t c = 0; c < widths.size(); ++c) rule.append(c > 0 ? kGap : 0, ' ').append(widths[c], '-');
  return rule + "\n";
}

std::string render_body(const Table& table, const TableOptions& options) {
  if (table.columns.empty()) return {};
  const std::vector<std::size_t> widths = choose_widths(table, options);
  std::string text;
  if (has_header(table)) text = render_row(table, headers(table), widths) + render_rule(widths);
  for (const auto& row : table.rows) text += render_row(table, row, widths);
  return text;
}

std::string quote_csv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string render_record(const std::vector<std::string>& cells) {
  // A lone empty cell is quoted, since an empty line is no record to most readers.
  if (cells.size() == 1 && cells[0].empty()) return "\"\"\n";
  std::string record;
  for (std::size_t c = 0; c < cells.size(); ++c) record.append(c > 0 ? "," : "").append(quote_csv(cells[c]));
  return record + "\n";
}

}  // namespace

TableOptions for_output(std::size_t elsewhere) {
  const auto columns = terminal_columns(STDOUT_FILENO);
  if (!columns) return {.width = elsewhere};
  return {.width = *columns, .overflow = TableOptions::Overflow::kShrinksAll};
}

std::string render_text(const Table& table, const TableOptions& options) {
  check_shape(table);
  std::string text = wrapped_paragraph(table.title, options.width) + render_body(table, options);
  // The empty line keeps a footnote from being read as a row.
  if (!table.footnotes.empty() && !text.empty()) text += "\n";
  for (const std::string& footnote : table.footnotes) text += wrapped_paragraph(footnote, options.width);
  return text;
}

std::string render_csv(const Table& table) {
  check_shape(table);
  if (table.columns.empty()) return {};
  std::string text = render_record(headers(table));
  for (const auto& row : table.rows) text += render_record(row);
  return text;
}

}  // namespace yoke::report
