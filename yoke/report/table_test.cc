#include "yoke/report/table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/text.h"
#include "yoke/report/values_testing.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::report {
namespace {

Table links() {
  return {.title = "Links",
          .columns = {{.header = "link"},
                      {.header = "Gb/s", .align = TextAlign::kRight},
                      {.header = "finding", .fit = ColumnFit::kShrinks}},
          .rows = {{"spark-1:0", "98.4", "both halves carry traffic"}, {"spark-1:1", "1.4", "MTU 1500"}},
          .footnotes = {"one second each"}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// The characters of a line as strings, so that columns can be cut out.
std::vector<std::string> characters(const std::string& line) {
  std::vector<std::string> result;
  for (const char c : line) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) result.emplace_back();
    result.back() += c;
  }
  return result;
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(render_text(links()),
            "Links\n"
            "link       Gb/s  finding\n"
            "---------  ----  -------------------------\n"
            "spark-1:0  98.4  both halves carry traffic\n"
            "spark-1:1   1.4  MTU 1500\n"
            "\n"
            "one second each\n");
}

TEST(Table, WrapsTheShrinkableColumnAndKeepsEveryWord) {
  EXPECT_EQ(render_text(links(), {.width = 30}),
            "Links\n"
            "link       Gb/s  finding\n"
            "---------  ----  -------------\n"
            "spark-1:0  98.4  both halves\n"
            "                 carry traffic\n"
            "spark-1:1   1.4  MTU 1500\n"
            "\n"
            "one second each\n");
}

TEST(Table, TakesFromTheWidestShrinkableColumnFirst) {
  const Table table{
      .columns = {{.header = "a", .fit = ColumnFit::kShrinks}, {.header = "b", .fit = ColumnFit::kShrinks}},
      .rows = {{"three short words", "a good many more words than in the other"}}};
  EXPECT_EQ(lines_of(render_text(table, {.width = 40}))[2], "three short words  a good many more");
}

TEST(Table, BecomesWiderThanAskedRatherThanUnreadable) {
  const auto lines = lines_of(render_text(links(), {.width = 5}));
  EXPECT_EQ(lines[2], "---------  ----  --------");
}

TEST(Table, IsOneLinePerRowWhenTheWidthIsUnlimited) {
  Table table = links();
  table.rows[0][2] = std::string(5000, 'x');
  EXPECT_EQ(lines_of(render_text(table, {.width = kUnlimitedWidth})).size(), 7U);
}

TEST(Table, CountsCharactersAndNotBytes) {
  const Table table{.columns = {{.header = "é"}, {.header = "b"}}, .rows = {{"éé", "x"}, {"ab", "y"}}};
  EXPECT_EQ(render_text(table), "é   b\n--  -\néé  x\nab  y\n");
}

TEST(Table, LeavesOutAHeaderWithoutText) {
  EXPECT_EQ(render_text({.columns = {{}, {}}, .rows = {{"a", "b"}}}), "a  b\n");
}

TEST(Table, OfNothingIsNothingAndOfNoRowsItsHeader) {
  EXPECT_EQ(render_text(Table{}), "");
  EXPECT_EQ(render_csv(Table{}), "");
  EXPECT_EQ(render_text({.columns = {{.header = "a"}}}), "a\n-\n");
}

TEST(Table, ShowsEscapeSequencesInsteadOfSendingThem) {
  EXPECT_EQ(render_text({.columns = {{}}, .rows = {{"\x1B[2J"}}}), "\\x1b[2J\n");
}

TEST(TableDeathTest, RowWithTheWrongNumberOfCellsIsABug) {
  EXPECT_DEATH(render_text({.columns = {{.header = "a"}}, .rows = {{"1", "2"}}}), "2 against 1");
  EXPECT_DEATH(render_csv({.columns = {{.header = "a"}}, .rows = {{}}}), "0 against 1");
}

TEST(TableCsv, QuotesOnlyWhatNeedsIt) {
  const Table table{.columns = {{.header = "a,b"}, {.header = "c"}},
                    .rows = {{"say \"hi\"", "plain text"}, {"1\n2", ""}}};
  EXPECT_EQ(render_csv(table), "\"a,b\",c\n\"say \"\"hi\"\"\",plain text\n\"1\n2\",\n");
}

// RFC 4180 read back, strictly.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> records;
  std::size_t at = 0;
  while (at < text.size()) {
    auto& record = records.emplace_back();
    for (;;) {
      std::string& cell = record.emplace_back();
      if (text[at] == '"') {
        for (++at; text.at(at) != '"' || text.at(at + 1) == '"'; ++at) {
          if (text[at] == '"') ++at;
          cell += text[at];
        }
        ++at;
      } else {
        while (text.at(at) != ',' && text.at(at) != '\n') cell += text[at++];
      }
      if (text.at(at++) == '\n') break;
    }
  }
  return records;
}

rc::Gen<std::string> text_of(const std::vector<std::string>& pieces) {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)),
                      [](const std::vector<std::string>& parts) {
                        std::string text;
                        for (const std::string& part : parts) text += part;
                        return text;
                      });
}

Table random_table(const std::vector<std::string>& pieces) {
  Table table;
  const auto columns = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t c = 0; c < columns; ++c) {
    // The first letter keeps the header, and with it the rule that shows where the columns lie.
    table.columns.push_back({.header = "h" + *text_of(pieces),
                             .align = *rc::gen::element(TextAlign::kLeft, TextAlign::kRight, TextAlign::kCentre),
                             .fit = *rc::gen::element(ColumnFit::kKeeps, ColumnFit::kShrinks)});
  }
  const auto rows = *rc::gen::inRange<std::size_t>(0, 4);
  for (std::size_t r = 0; r < rows; ++r) {
    auto& row = table.rows.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) row.push_back(*text_of(pieces));
  }
  return table;
}

const std::vector<std::string> kWords = {"a", "bc", "é", "漢", " ", " ", "/", "longer", "\n"};

RC_GTEST_PROP(TableProperty, NoLineExceedsTheWidthWhenEveryColumnShrinks, ()) {
  Table table = random_table(kWords);
  for (TableColumn& column : table.columns) column.fit = ColumnFit::kShrinks;
  const std::size_t least = table.columns.size() * (kMinColumnWidth + 2);
  const auto width = *rc::gen::inRange<std::size_t>(least, least + 60);
  for (const std::string& line : lines_of(render_text(table, {.width = width}))) {
    RC_ASSERT(count_columns(line) <= width);
    RC_ASSERT(!line.ends_with(' '));
  }
}

RC_GTEST_PROP(TableProperty, EveryColumnKeepsItsTextInOrder, ()) {
  const Table table = random_table(kWords);
  const auto lines = lines_of(render_text(table, {.width = *rc::gen::inRange<std::size_t>(1, 100)}));
  const auto rule = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.empty() && line.find_first_not_of("- ") == std::string::npos;
  });
  RC_ASSERT(rule != lines.end());
  std::size_t begin = 0;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::size_t end = std::min(rule->find(' ', begin), rule->size());
    std::string shown, given = table.columns[c].header;
    for (const auto& row : table.rows) given += row[c];
    for (const std::string& line : lines) {
      if (&line == &*rule) continue;
      const auto letters = characters(line);
      for (std::size_t i = begin; i < std::min(end, letters.size()); ++i) shown += letters[i];
    }
    RC_ASSERT(without_spaces(shown) == without_spaces(given));
    begin = end + 2;
  }
}

RC_GTEST_PROP(TableProperty, CsvReadsBackAsWritten, ()) {
  std::vector<std::string> pieces = hostile_pieces();
  pieces.insert(pieces.end(), {",", ",", "\"", "\"\"", "\r"});
  const Table table = random_table(pieces);
  std::vector<std::vector<std::string>> expected(1);
  for (const TableColumn& column : table.columns) expected[0].push_back(column.header);
  expected.insert(expected.end(), table.rows.begin(), table.rows.end());
  RC_ASSERT(parse_csv(render_csv(table)) == expected);
}

}  // namespace
}  // namespace yoke::report
