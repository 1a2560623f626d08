#include "yoke/terminal/terminal_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/text.h"

namespace yoke::terminal {
namespace {

TEST(TerminalText, FoldsALongSentenceAndIndentsWhatFollows) {
  EXPECT_EQ(fold_lines("one two three four\n", 10), "one two\nthree four\n");
  EXPECT_EQ(fold_lines("  fix        one two three four\n", 30), "  fix        one two three\n             four\n");
  EXPECT_EQ(fold_lines("  - one two three\n", 12), "  - one two\n    three\n");
  EXPECT_EQ(fold_lines("short, and no line end", 80), "short, and no line end");
}

TEST(TerminalText, AFoldedCommentIsACommentInEveryLine) {
  EXPECT_EQ(fold_lines("# Transport: tcp over A and B\n", 20), "# Transport: tcp\n#   over A and B\n");
}

TEST(TerminalText, KeepsACommandToPasteInOneLine) {
  const std::string line = "  yoke link discover 192.168.1.21 192.168.1.22 -o cluster.yaml --force\n";
  EXPECT_EQ(fold_lines(line, 40), line);
}

TEST(TerminalText, LeavesConstantColumnsOfACollectivesTableOutWhereItIsTooNarrow) {
  const std::string table =
      "#                                                              out-of-place                       in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
      "#wrong\n"
      "     1048576        262144     float     sum      -1   264.87    3.96    3.96       0   913.88    1.15    1.15  "
      "     0\n";
  EXPECT_EQ(fold_lines(table, 80),
            "#                      out-of-place                       in-place\n"
            "# Below 118 columns count, type, redop and root are left out.\n"
            "#       size     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
            "     1048576   264.87    3.96    3.96       0   913.88    1.15    1.15       0\n");
  EXPECT_EQ(fold_lines(table, 118), table);
}

TEST(TerminalText, ColoursFindingsAndVerdictsOnly) {
  const TerminalKind terminal{.columns = 80, .colour = true};
  EXPECT_EQ(for_terminal("error rail-down: spark-1\n", terminal), "\x1b[1;31merror\x1b[0m rail-down: spark-1\n");
  EXPECT_EQ(for_terminal("warning mtu-small\n", terminal), "\x1b[1;33mwarning\x1b[0m mtu-small\n");
  EXPECT_EQ(for_terminal("Verdict: healthy.\n", terminal), "\x1b[1;32mVerdict: healthy.\x1b[0m\n");
  EXPECT_EQ(for_terminal("2 findings: 1 error, 1 warning.\n", terminal),
            "\x1b[1;31m2 findings\x1b[0m: 1 error, 1 warning.\n");
  EXPECT_EQ(for_terminal("error to order\n", terminal), "error to order\n") << "no rule has this name";
  EXPECT_EQ(for_terminal("error rail-down: spark-1\n", {.columns = 80}), "error rail-down: spark-1\n");
}

TEST(TerminalText, HasAsciiFormsForALocaleWithoutUtf8) {
  EXPECT_EQ(for_terminal("ADDRESS… 2×\n", {.utf8 = false}), "ADDRESS... 2x\n");
  EXPECT_EQ(for_terminal("ADDRESS…\n", {.utf8 = true}), "ADDRESS…\n");
  EXPECT_EQ(for_terminal("port 0 ══ port 0\n", {.utf8 = false}), "port 0 == port 0\n") << "a cable of yoke plan";
}

RC_GTEST_PROP(TerminalTextProperty, NoFoldedLineIsWiderAndNoWordIsLost, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc…"))));
  std::string line = "x";
  for (const std::string& word : words) line += " " + (find_invalid_utf8(word) ? "u" : word);
  const std::size_t columns = *rc::gen::inRange<std::size_t>(20, 60);
  std::string together;
  for (const std::string& part : split(fold_lines(line, columns), '\n')) {
    RC_ASSERT(count_columns(part) <= columns);
    for (const char c : part) {
      if (c != ' ') together += c;
    }
  }
  std::string wanted;
  for (const char c : line) {
    if (c != ' ') wanted += c;
  }
  RC_ASSERT(together == wanted);
}

}  // namespace
}  // namespace yoke::terminal
