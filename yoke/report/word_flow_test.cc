#include "yoke/report/word_flow.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/text.h"

namespace yoke::report {
namespace {

std::string flow(std::string_view text, std::size_t columns, std::size_t piece = 1) {
  WordFlow words(columns);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += piece) out += words.add(text.substr(at, piece));
  return out + words.finish();
}

TEST(WordFlow, BreaksBetweenWordsHoweverTheTextIsCut) {
  for (std::size_t piece = 1; piece < 20; ++piece) {
    EXPECT_EQ(flow("One QSFP cable joins two Sparks.", 12, piece), "One QSFP\ncable joins\ntwo Sparks.") << piece;
  }
}

TEST(WordFlow, KeepsLineBreaksAndAWordThatIsTooLong) {
  EXPECT_EQ(flow("a\n\nb abcdefghijkl c", 8), "a\n\nb\nabcdefghijkl\nc");
}

TEST(WordFlow, LeavesCodeAsItIs) {
  const std::string code = "```\nfor (int i = 0; i < 10; ++i) sum += i;\n```\n    indented code that is long\n";
  EXPECT_EQ(flow(code + "then words again", 10), code + "then words\nagain");
}

TEST(WordFlow, ShowsAWordAsSoonAsItEnds) {
  WordFlow words(80);
  EXPECT_EQ(words.add("One"), "");
  EXPECT_EQ(words.add(" QS"), "One");
  EXPECT_EQ(words.finish(), " QS");
}

RC_GTEST_PROP(WordFlowProperty, LosesNothingButSpacesAtBreaks, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab  \n`c")));
  const auto columns = *rc::gen::inRange<std::size_t>(1, 30);
  std::string want, got;
  for (const char c : text) want += c == '\n' || c == ' ' ? "" : std::string(1, c);
  for (const char c : flow(text, columns)) got += c == '\n' || c == ' ' ? "" : std::string(1, c);
  RC_ASSERT(want == got);
}

}  // namespace
}  // namespace yoke::report
