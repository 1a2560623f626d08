#include "yoke/text/stops.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::text {
namespace {

TEST(StopMatcher, FindsAStopTextAcrossPieces) {
  StopMatcher stops({"END"});
  EXPECT_EQ(stops.add("some E"), "some ");
  EXPECT_EQ(stops.add("N"), "");
  EXPECT_EQ(stops.add("D and more"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.matched(), "END");
  EXPECT_EQ(stops.add("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopMatcher, GivesBackWhatWasNoStopText) {
  StopMatcher stops({"aab"});
  EXPECT_EQ(stops.add("aa"), "");
  EXPECT_EQ(stops.add("a"), "a") << "the last two may still begin it";
  EXPECT_EQ(stops.add("c"), "aac");
  EXPECT_EQ(stops.add("xa"), "x");
  EXPECT_EQ(stops.finish(), "a");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopMatcher, ATokenEndsTheAnswerToo) {
  StopMatcher stops({"END"}, {7, 9});
  EXPECT_FALSE(stops.stops_at(8));
  EXPECT_EQ(stops.add("the E"), "the ");
  EXPECT_TRUE(stops.stops_at(9));
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.matched(), "");
  EXPECT_EQ(stops.finish(), "E") << "it did not become the stop text";
}

TEST(StopMatcher, TheEarliestOfSeveralWins) {
  StopMatcher stops({"yy", "x"});
  EXPECT_EQ(stops.add("abxyy"), "ab");
  EXPECT_EQ(stops.matched(), "x");
}

TEST(StopMatcher, WithoutStopTextsEverythingPasses) {
  StopMatcher stops({});
  EXPECT_EQ(stops.add("abc"), "abc");
  EXPECT_FALSE(stops.stopped());
  EXPECT_ERROR(StopMatcher({""}), ErrorCode::kInvalid, "a stop text must not be empty");
}

RC_GTEST_PROP(StopMatcher, GivesTheSameHoweverTheTextIsCut, (std::uint32_t bits, std::uint32_t cuts)) {
  std::string text;
  for (int i = 0; i < 32; ++i) text += (bits >> i) & 1U ? 'a' : 'b';
  const std::string stop = "abba";
  StopMatcher stops({stop});
  std::string given;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && ((cuts >> end) & 1U) == 0) ++end;
    given += stops.add(text.substr(begin, end - begin));
    begin = end;
  }
  given += stops.finish();
  RC_ASSERT(given == text.substr(0, text.find(stop)));
  RC_ASSERT(stops.stopped() == (text.find(stop) != std::string::npos));
}

}  // namespace
}  // namespace yoke::text
