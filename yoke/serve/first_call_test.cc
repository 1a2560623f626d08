#include "yoke/serve/first_call.h"

#include <gtest/gtest.h>

namespace yoke::serve {
namespace {

std::string calls_of(std::string_view answer, FirstCall* first) {
  text::AnswerParser parser({.tools = text::ToolStyle::kHermes}, {.tools = {"f", "g"}});
  std::string all;
  const auto add = [&](std::vector<text::AnswerPart> parts) {
    for (const text::AnswerPart& part : first ? first->take(std::move(parts)) : parts) {
      all += (part.kind == text::AnswerPart::Kind::kCall ? "call " : "") + part.text;
    }
  };
  for (const char c : answer) add(parser.add(std::string_view(&c, 1)));
  add(parser.finish());
  return all;
}

TEST(FirstCall, EndsAnAnswerBeforeASecondCall) {
  const std::string two =
      "First.<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>\n"
      "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call> and more";
  EXPECT_NE(calls_of(two, nullptr).find("call g"), std::string::npos);
  FirstCall first;
  EXPECT_EQ(calls_of(two, &first), "First.call f{\"a\": 1}");
  EXPECT_TRUE(first.is_complete());
}

TEST(FirstCall, LeavesAnAnswerWithoutASecondOneAsItIs) {
  const std::string one = "Now.<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}</tool_call>";
  FirstCall first, none;
  EXPECT_EQ(calls_of(one, &first), calls_of(one, nullptr));
  EXPECT_FALSE(first.is_complete());
  EXPECT_EQ(calls_of("Just text.", &none), "Just text.");
}

}  // namespace
}  // namespace yoke::serve
