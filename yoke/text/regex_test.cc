#include "yoke/text/regex.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

TEST(Pattern, FindsWithUnicodeProperties) {
  const Pattern letters = Pattern::regex("\\p{L}+", "test");
  EXPECT_EQ(letters.find_all("für 2 да"), (std::vector<Match>{{0, 4}, {7, 11}}));
  EXPECT_TRUE(letters.find_all("").empty());
}

TEST(Pattern, SpacesAreThoseOfUnicode) {
  const Pattern spaces = Pattern::regex("[\\s]|\\S", "test");
  EXPECT_EQ(Pattern::regex("\\s", "test").find_all("a\u3000b\u0085c\u180Ed"), (std::vector<Match>{{1, 4}, {5, 7}}));
  EXPECT_EQ(spaces.find_all("a\u3000").size(), 2U);
  EXPECT_EQ(Pattern::regex("\\\\s", "test").find_all("\\s ").size(), 1U) << "an escaped backslash is none before s";
}

TEST(Pattern, EmptyMatchesNeitherCountNorLoop) {
  EXPECT_TRUE(Pattern::regex("x*", "test").find_all("ää").empty());
  EXPECT_EQ(Pattern::regex("x*", "test").find_all("axxb"), (std::vector<Match>{{1, 3}}));
  EXPECT_TRUE(Pattern::literal("").find_all("ab").empty());
}

TEST(Pattern, LiteralsAreNoExpressions) {
  EXPECT_EQ(Pattern::literal("a.").replace_all("a.b a.c ab", "X"), "Xb Xc ab");
  EXPECT_EQ(Pattern::literal("aa").find_all("aaaaa"), (std::vector<Match>{{0, 2}, {2, 4}}));
}

TEST(Pattern, RefusesWhatItCannotCompile) {
  try {
    Pattern::regex("(unclosed", "tokenizer.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(error.message().find("tokenizer.json"), std::string::npos);
    EXPECT_NE(error.message().find("(unclosed"), std::string::npos);
  }
}

TEST(Pattern, GivesUpInsteadOfHanging) {
  const Pattern slow = Pattern::regex("(?:a|a|aa)+$", "test");
  EXPECT_ERROR(slow.find_all(std::string(100, 'a') + "b"), ErrorCode::kExhausted, "match limit exceeded");
}

TEST(Pattern, ALongRunOfSpacesIsNotTooMuch) {
  const Pattern split = Pattern::regex("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", "test");
  EXPECT_EQ(split.find_all(std::string(1'000'000, ' ') + "x").size(), 2U);
}

}  // namespace
}  // namespace yoke
