#include "yoke/chat/chat_input.h"

#include <gtest/gtest.h>

#include "yoke/terminal/line_editor.h"

namespace yoke::chat {
namespace {

TEST(MessageJoiner, TakesALineAsAMessage) {
  MessageJoiner joiner;
  EXPECT_EQ(joiner.add("Which cable?"), "Which cable?");
  EXPECT_TRUE(joiner.is_empty());
}

TEST(MessageJoiner, JoinsWhatStandsBetweenTripleQuotes) {
  MessageJoiner joiner;
  EXPECT_FALSE(joiner.add(R"(""")"));
  EXPECT_FALSE(joiner.is_empty());
  EXPECT_FALSE(joiner.add("one"));
  EXPECT_EQ(joiner.add(R"(two""")"), "one\ntwo");
  EXPECT_EQ(joiner.add(R"("""all in one""")"), "all in one");
  EXPECT_EQ(joiner.add("next"), "next");
}

TEST(MessageJoiner, JoinsALineThatEndsWithABackslash) {
  MessageJoiner joiner;
  EXPECT_FALSE(joiner.add("one\\"));
  EXPECT_EQ(joiner.add("two"), "one\ntwo");
}

TEST(MessageJoiner, ForgetsWhatWasInterrupted) {
  MessageJoiner joiner;
  EXPECT_FALSE(joiner.add(R"("""rail)"));
  joiner.clear();
  EXPECT_EQ(joiner.add("whole"), "whole");
}

TEST(CursorRow, CountsLineEndsAndFullRows) {
  EXPECT_EQ(terminal::cursor_row(L"", 2, 10), 0U);
  EXPECT_EQ(terminal::cursor_row(L"abcdefg", 2, 10), 0U);
  EXPECT_EQ(terminal::cursor_row(L"abcdefgh", 2, 10), 1U) << "the cursor is behind the last column";
  EXPECT_EQ(terminal::cursor_row(L"ab\ncd\n", 2, 10), 2U);
  EXPECT_EQ(terminal::cursor_row(std::wstring(25, L'x'), 2, 10), 2U);
}

}  // namespace
}  // namespace yoke::chat
