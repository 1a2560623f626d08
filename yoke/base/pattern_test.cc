#include "yoke/base/pattern.h"

#include <gmock/gmock.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

std::vector<Match> find_all(const Pattern& pattern, std::string_view text) {
  CpuBudget budget(limits::kTextTime, "the test");
  return pattern.find_all(text, budget);
}

std::string replace_all(const Pattern& pattern, std::string_view text, std::string_view replacement,
                        std::size_t bytes_max = 1000) {
  CpuBudget budget(limits::kTextTime, "the test");
  return pattern.replace_all(text, replacement, bytes_max, budget);
}

ErrorCode refusal(std::string_view expression, std::string_view text) {
  try {
    find_all(Pattern::regex(expression, "test"), text);
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::AnyOf(testing::HasSubstr("test: the pattern"),
                                                testing::HasSubstr("the test takes more than")));
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Pattern, FindsWithUnicodeProperties) {
  const Pattern letters = Pattern::regex("\\p{L}+", "test");
  EXPECT_EQ(find_all(letters, "für 2 да"), (std::vector<Match>{{0, 4}, {7, 11}}));
  EXPECT_TRUE(find_all(letters, "").empty());
}

TEST(Pattern, SpacesAreThoseOfUnicode) {
  const Pattern spaces = Pattern::regex("[\\s]|\\S", "test");
  EXPECT_EQ(find_all(Pattern::regex("\\s", "test"), "a\u3000b\u0085c\u180Ed"), (std::vector<Match>{{1, 4}, {5, 7}}));
  EXPECT_EQ(find_all(spaces, "a\u3000").size(), 2U);
  EXPECT_EQ(find_all(Pattern::regex("\\\\s", "test"), "\\s ").size(), 1U) << "an escaped backslash is none before s";
}

TEST(Pattern, EmptyMatchesNeitherCountNorLoop) {
  EXPECT_TRUE(find_all(Pattern::regex("x*", "test"), "ää").empty());
  EXPECT_EQ(find_all(Pattern::regex("x*", "test"), "axxb"), (std::vector<Match>{{1, 3}}));
  EXPECT_TRUE(find_all(Pattern::literal(""), "ab").empty());
}

TEST(Pattern, LiteralsAreNoExpressions) {
  EXPECT_EQ(replace_all(Pattern::literal("a."), "a.b a.c ab", "X"), "Xb Xc ab");
  EXPECT_EQ(find_all(Pattern::literal("aa"), "aaaaa"), (std::vector<Match>{{0, 2}, {2, 4}}));
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
  EXPECT_ERROR(find_all(slow, std::string(100, 'a') + "b"), ErrorCode::kExhausted, "(?:a|a|aa)+$");
}

TEST(Pattern, ALongRunOfSpacesIsNotTooMuch) {
  const Pattern split = Pattern::regex("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", "test");
  EXPECT_EQ(find_all(split, std::string(1'000'000, ' ') + "x").size(), 2U);
}

// A lookaround cannot hold \K, but it can call a group that does.
TEST(Pattern, MatchesThatMakeNoSenseAreRefused) {
  EXPECT_EQ(refusal("(?(DEFINE)(?<k>ab\\K))(?=(?&k))", "xxabab"), ErrorCode::kInvalid);
  EXPECT_EQ(refusal("(?(DEFINE)(?<k>\\Ka))(?<=(?&k))b|a", "abababab"), ErrorCode::kInvalid);
  EXPECT_EQ(find_all(Pattern::regex("a\\Kb", "test"), "abab"), (std::vector<Match>{{1, 2}, {3, 4}}));
}

// Each match is far under the limit of steps: 2^22 at the first letter of each word.
TEST(Pattern, AllMatchesOfATextTogetherHaveALimitOfTime) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += std::string(22, 'a') + "!";
  EXPECT_EQ(refusal("(?:a|a)+b|a", text), ErrorCode::kExhausted);
}

// PCRE2 counts no steps for this: each start walks all that follows.
TEST(Pattern, AQuadraticSearchHasALimitOfTime) {
  EXPECT_EQ(refusal("(?<=a)a+[bc]", std::string(1'000'000, 'a')), ErrorCode::kExhausted);
}

TEST(Pattern, MatchesBehindALongStretchWithoutAnyAreFound) {
  for (const std::size_t stretch : {1023U, 1024U, 1025U, 2048U, 2049U, 5000U}) {
    std::string text;
    while (text.size() < stretch) text += "ä";
    text += "xy";
    const Match wanted{text.size() - 2, text.size()};
    EXPECT_EQ(find_all(Pattern::regex("(?<=ä)xy", "test"), text), std::vector<Match>{wanted}) << stretch;
    EXPECT_EQ(find_all(Pattern::regex("x*y", "test"), text), std::vector<Match>{wanted}) << stretch;
  }
}

TEST(Pattern, ALongPatternIsRefused) {
  EXPECT_NO_THROW(Pattern::regex(std::string(limits::kPatternBytes, 'a'), "test"));
  EXPECT_EQ(refusal(std::string(limits::kPatternBytes + 1, 'a'), ""), ErrorCode::kUnsupported);
}

TEST(Pattern, AReplacementHasALimitOfSize) {
  EXPECT_EQ(replace_all(Pattern::literal("a"), "aaa", "bb", 6), "bbbbbb");
  EXPECT_ERROR(replace_all(Pattern::literal("a"), "aaa", "bb", 5), ErrorCode::kExhausted,
               "a replacement makes more than 5 bytes of a text of 3");
}

TEST(Pattern, ATextBeginsWithIt) {
  const Pattern name = Pattern::regex("model\\.(layers|norm)", "test", {.speed = PatternSpeed::kInterpret});
  EXPECT_TRUE(name.begins("model.layers.0"));
  EXPECT_FALSE(name.begins("a.model.layers.0"));
  EXPECT_TRUE(Pattern::regex("x*", "test").begins("y")) << "an empty match is one";
}

}  // namespace
}  // namespace yoke
