// Aligned tables for the terminal, and the same table as CSV; html.h shows it on a page.
//
//   const Table table{.title = "Links",
//                     .columns = {{.header = "link"},
//                                 {.header = "rate", .align = TextAlign::kRight},
//                                 {.header = "finding", .fit = ColumnFit::kShrinks}},
//                     .rows = {{"spark-1:0", "98.4 Gb/s", "both halves carry traffic"}}};
//   fmt::print("{}", render_text(table, {.width = 80}));
//
// Plain ASCII and one row per line as long as it fits, so that grep and awk work on it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "yoke/report/wrap.h"

namespace yoke::report {

// A column that shrinks is wrapped onto further lines where the table is too wide. The widest gives way first.
enum class ColumnFit { kKeeps, kShrinks };

struct TableColumn {
  std::string header{};
  TextAlign align = TextAlign::kLeft;  // numbers go right
  ColumnFit fit = ColumnFit::kKeeps;
};

struct Table {
  std::string title{};
  std::vector<TableColumn> columns{};
  std::vector<std::vector<std::string>> rows{};  // each with one cell per column: anything else is a bug
  std::vector<std::string> footnotes{};
};

struct TableOptions {
  std::size_t width = kTerminalWidth;  // or kUnlimitedWidth
  // Where the columns that shrink do not suffice, the others give way too: on a terminal, which breaks a wider line
  // wherever its edge is. In a pipe a row stays on its line.
  enum class Overflow { kIsWider, kShrinksAll } overflow = Overflow::kIsWider;
};
// For standard output: as wide as the terminal, else `elsewhere`.
TableOptions for_output(std::size_t elsewhere = kTerminalWidth);

// A column that shrinks keeps at least this many columns (or what it needs, if that is less): a table whose fixed
// columns leave no room for it becomes wider than asked, for a column of single letters cannot be read.
inline constexpr std::size_t kMinColumnWidth = 8;

// Without any header text the header and its rule are left out.
std::string render_text(const Table& table, const TableOptions& options = for_output());

// Quoted as in RFC 4180, header first, without title and footnotes. Lines end with a bare line feed, not with the
// CRLF of the RFC: every reader takes it, and with CRLF the last column of `cut -d,` would end in an invisible byte.
std::string render_csv(const Table& table);

}  // namespace yoke::report
