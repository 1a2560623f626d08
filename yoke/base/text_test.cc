#include "yoke/base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace yoke {
namespace {

TEST(Utf8, ReportsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("grün 漢 \U0001F402"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0U);          // overlong
  EXPECT_EQ(find_invalid_utf8("a\xed\xa0\x80"), 1U);     // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("abc\xe6\xbc"), 3U);       // cut off
}

TEST(Nearest, FindsTyposAndStartsButNotOtherWords) {
  const std::vector<std::string> words = {"nodes", "name", "hardware", "fabric", "topology"};
  EXPECT_EQ(nearest("node", words), "nodes");
  EXPECT_EQ(nearest("ndoes", words), "nodes");
  EXPECT_EQ(nearest("topo", words), "topology");
  EXPECT_EQ(nearest("xyzzy", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(suggest("fabrik", words, "keys"), "did you mean 'fabric'?");
  EXPECT_EQ(suggest("q", std::vector<std::string>{"abc", "def"}, "keys"), "the keys are abc, def");
}

TEST(Text, IsTrimmedAndSplit) {
  EXPECT_EQ(trim(" \t a b\n"), "a b");
  EXPECT_EQ(trim("\n"), "");
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(count_columns("grün"), 4U);
}

TEST(Printable, ShowsWhatCannotBeShownAndCutsWhatIsLong) {
  EXPECT_EQ(printable("a\x1b[31m\xff"), "a\\x1b[31m\\xff");
  EXPECT_EQ(printable("\u009b1m\u00a0"), "\\xc2\\x9b1m\u00a0");
  EXPECT_EQ(printable("abcdef", 3), "abc…");
}

RC_GTEST_PROP(Printable, IsAlwaysUtf8WithoutControlCharacters, (const std::string& text)) {
  const std::string shown = printable(text);
  RC_ASSERT(find_invalid_utf8(shown) == std::nullopt);
  RC_ASSERT(std::none_of(shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

TEST(Nearest, LongWordsAreNotCompared) {
  const std::string long_name = "model.layers" + std::string(10'000'000, 'x');
  EXPECT_EQ(nearest("model.layer", std::vector<std::string>{long_name}), std::nullopt);
  EXPECT_EQ(nearest("model.layer", std::vector<std::string>{long_name, "model.layers"}), "model.layers");
  EXPECT_EQ(nearest("abdc", std::vector<std::string>{"abcd"}), "abcd") << "a swap of neighbours counts once";
}

TEST(TerminalSafe, KeepsLinesAndShowsWhatSteers) {
  EXPECT_EQ(terminal_safe("a\tb\n\x1b]0;owned\x07\r\u009b\x7f\xff é"),
            "a\tb\n\\x1b]0;owned\\x07\\x0d\\xc2\\x9b\\x7f\\xff é");
}

TEST(FindText, IsAsTheStringsOwn) {
  EXPECT_EQ(find_text("abcabc", "ca"), 2U);
  EXPECT_EQ(find_text("abcabc", "a", 1), 3U);
  EXPECT_EQ(find_text("abc", "x"), std::string::npos);
  EXPECT_EQ(find_text("abc", "", 3), 3U);
  EXPECT_EQ(find_text("abc", "", 4), std::string::npos);
}

}  // namespace
}  // namespace yoke
