#include "yoke/text/unicode.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/text.h"

namespace yoke::text {
namespace {

TEST(Unicode, NormalFormsComposeAndDecompose) {
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "\u00e9");
  EXPECT_EQ(normalize("\u00e9", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("\ufb01", NormalForm::kNfc), "\ufb01");
  EXPECT_EQ(normalize("\ufb01", NormalForm::kNfkc), "fi");
  EXPECT_EQ(normalize("\u1e69", NormalForm::kNfkd), "s\u0323\u0307");
  EXPECT_EQ(normalize("", NormalForm::kNfc), "");
  EXPECT_EQ(normalize(std::string_view("a\0b", 3), NormalForm::kNfkc), std::string("a\0b", 3));
}

TEST(Unicode, CaseWorksBeyondAscii) {
  EXPECT_EQ(lower_case("ÄÖ ДВА X1"), "äö два x1");
  EXPECT_EQ(upper_case("äö два x1"), "ÄÖ ДВА X1");
}

// The example of the Unicode standard, section 3.9: one U+FFFD for each longest broken part.
TEST(Unicode, ABrokenPartBecomesOneReplacement) {
  EXPECT_EQ(replace_invalid_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("plain"), "plain");
}

RC_GTEST_PROP(Unicode, ReplacedTextIsValid, (const std::string& bytes)) {
  RC_ASSERT(!find_invalid_utf8(replace_invalid_utf8(bytes)));
}

TEST(Unicode, AnUnfinishedCharacterAtTheEndIsSeen) {
  const std::string smile = "\xF0\x9F\x98\x80";
  for (std::size_t size = 1; size < 4; ++size) EXPECT_EQ(incomplete_utf8_tail("x" + smile.substr(0, size)), size);
  EXPECT_EQ(incomplete_utf8_tail("x" + smile), 0U);
  EXPECT_EQ(incomplete_utf8_tail(""), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80"), 0U) << "what has no start will never be a character";
  EXPECT_EQ(incomplete_utf8_tail("\xED\xA0"), 0U) << "a surrogate will never be a character";
}

TEST(Unicode, CodePointsComeBack) {
  for (const char32_t code :
       {U'\0', U'a', U'\x7f', U'\x80', U'\u07ff', U'\u0800', U'\uffff', U'\U00010000', U'\U0010ffff'}) {
    std::string text;
    append_utf8(text, code);
    EXPECT_EQ(utf8_length(text), text.size());
    EXPECT_EQ(code_point(text), code);
  }
}

TEST(Unicode, TrimmingTakesTheSpacesOfAllScripts) {
  EXPECT_EQ(trim_start(" \u3000\u00a0\nx "), "x ");
  EXPECT_EQ(trim_end(" x \u2003\t"), " x");
  EXPECT_EQ(trim_end("\u3000"), "");
  EXPECT_EQ(trim_start("\u200bx"), "\u200bx") << "a zero-width space is no white space";
}

}  // namespace
}  // namespace yoke::text
