// The table of `yoke bench` as other people's programs read nccl-tests' one: Microsoft's SuperBench and AWS's
// nccl_to_csv. The rules are theirs, the code is ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using namespace literals;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::string& cell : split(line, ' ')) {
    if (!cell.empty()) cells.push_back(std::move(cell));
  }
  return cells;
}

// SuperBench takes the last line with "out-of-place" for the head of the table, and what stands from there to the last
// line with "Out of bounds values" for the table. The line with "time" and "busbw" names the columns; a row begins with
// a digit.
struct SuperBenchTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
SuperBenchTable read_as_superbench(const std::string& output) {
  const std::vector<std::string> lines = split(output, '\n');
  std::size_t head = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("out-of-place") != std::string::npos) head = i;
    if (lines[i].find("Out of bounds values") != std::string::npos) end = i;
  }
  SuperBenchTable table;
  for (std::size_t i = head + 1; i < end; ++i) {
    const bool names = lines[i].find("time") != std::string::npos && lines[i].find("busbw") != std::string::npos;
    if (table.columns.empty() && names) table.columns = cells_of(lines[i].substr(1));
    const std::vector<std::string> cells = cells_of(lines[i]);
    if (!cells.empty() && std::isdigit(static_cast<unsigned char>(cells[0][0]))) table.rows.push_back(cells);
  }
  return table;
}

// nccl_to_csv takes every line that is thirteen fields, the first two of them numbers, and the average by its words.
std::size_t rows_as_aws(const std::string& output) {
  const std::regex row(
      R"(^\s*\d+\s+\d+\s+\w+\s+\w+\s+-?\d+(\s+\d+\.?\d*){3}\s+(\d+|N/A)(\s+\d+\.?\d*){3}\s+(\d+|N/A)\s*$)");
  const std::vector<std::string> lines = split(output, '\n');
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return std::regex_match(line, row); }));
}

std::size_t lines_with(const std::string& output, std::string_view words) {
  const std::vector<std::string> lines = split(output, '\n');
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; }));
}

TEST(BenchTable, IsReadByTheParsersOfNcclTests) {
  const ScratchDir scratch;
  for (const char* collective : {"all-reduce", "all-gather", "broadcast"}) {
    const Outcome outcome =
        run_yoke({"bench", collective, "-b", "8", "-e", "4K", "-f", "8", "-n", "5", "--ranks", "2"},
                 {.environment = {{"XDG_DATA_HOME", scratch.path()}}, .folder = scratch.path(), .timeout = 60_s});
    ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
    for (const char* words : {"out-of-place", "in-place", "Out of bounds values", "Avg bus bandwidth"}) {
      EXPECT_EQ(lines_with(outcome.out, words), 1U) << collective << ": '" << words << "'\n" << outcome.out;
    }
    const SuperBenchTable table = read_as_superbench(outcome.out);
    ASSERT_EQ(table.rows.size(), 4U) << outcome.out;
    const auto column = [&](const char* name) {
      return static_cast<std::size_t>(std::find(table.columns.begin(), table.columns.end(), name) -
                                      table.columns.begin());
    };
    ASSERT_LT(column("busbw"), table.columns.size()) << outcome.out;
    EXPECT_EQ(table.columns[0], "size");
    for (const auto& row : table.rows) {
      ASSERT_EQ(row.size(), table.columns.size()) << outcome.out;
      EXPECT_GT(std::stod(row[column("time")]), 0);
      EXPECT_GE(std::stod(row[column("busbw")]), 0);
    }
    EXPECT_EQ(rows_as_aws(outcome.out), 4U) << outcome.out;
  }
}

}  // namespace
}  // namespace yoke::tests
