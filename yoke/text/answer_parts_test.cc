// Answers as models write them, taken apart: whole, and byte by byte as a stream brings them.
#include <gtest/gtest.h>

#include "yoke/text/answer_parts.h"

namespace yoke::text {
namespace {

using PartKind = AnswerPart::Kind;

// "text|THOUGHT|f(…)": what came, with neighbours of one kind put together.
std::string shown_parts(const std::vector<AnswerPart>& parts) {
  std::string shown;
  std::optional<PartKind> last;
  for (const AnswerPart& part : parts) {
    const bool goes_on = last == part.kind && part.kind != PartKind::kCall;
    if (!goes_on && !shown.empty() && part.kind != PartKind::kArguments) shown += "|";
    if (part.kind == PartKind::kThought && !goes_on) shown += "thought:";
    if (part.kind == PartKind::kCall) shown += "call:";
    if (part.kind == PartKind::kArguments && !goes_on) shown += "=";
    shown += part.text;
    last = part.kind;
  }
  return shown;
}

std::string parsed(AnswerStyle style, const AnswerParserOptions& options, std::string_view text, std::size_t step) {
  AnswerParser parser(style, options);
  std::vector<AnswerPart> all;
  const auto take = [&](std::vector<AnswerPart> parts) { all.insert(all.end(), parts.begin(), parts.end()); };
  for (std::size_t at = 0; at < text.size(); at += step) take(parser.add(text.substr(at, step)));
  take(parser.finish());
  return shown_parts(all);
}

struct PartsCase {
  AnswerStyle style;
  AnswerParserOptions options;
  std::string text, parts;
};

TEST(AnswerParts, AreTheSameHoweverTheTextComes) {
  const AnswerStyle plain, hermes{ToolStyle::kHermes, true}, llama{ToolStyle::kBareJson}, harmony{ToolStyle::kHarmony};
  const AnswerParserOptions tools{.tools = {"f", "g"}};
  const std::vector<PartsCase> cases = {
      {plain, {}, "a <think> b {\"name\": \"f\"} ", "a <think> b {\"name\": \"f\"} "},
      {hermes, {}, "<think>\nhm</think>\n\nYes.", "thought:\nhm|Yes."},
      {hermes, {.begins_in_thought = true}, "hm</think>Yes.\n", "thought:hm|Yes.\n"},
      {hermes, {}, "<thin air>", "<thin air>"},
      {hermes, tools,
       "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"{\", \"b\": [1]}}\n</tool_call>",
       "Let me see.|call:f={\"a\": \"}\\\"{\", \"b\": [1]}"},
      {hermes, tools,
       "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"arguments\":{\"x\":1},\"name\":\"g\"}</"
       "tool_call>",
       "call:f={}|call:g={\"x\":1}"},
      {hermes, tools, "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>",
       "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>"},
      {hermes, tools, "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n</tool_", "call:f={}"},
      {hermes, tools, "<tool_call>nonsense", "<tool_call>nonsense"},
      {hermes, {}, "<tool_call>{\"name\":\"f\"}</tool_call>", "<tool_call>{\"name\":\"f\"}</tool_call>"},
      {llama, tools, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "call:f={\"a\": 1}"},
      {llama, tools, "{\"type\": \"function\", \"name\": \"g\", \"parameters\": \"{}\"}; {\"name\": \"f\"}",
       "call:g={}|call:f={}"},
      {llama, tools, "{\"colour\": \"red\"}", "{\"colour\": \"red\"}"},
      {llama, tools, "Use {\"name\": \"f\"}", "Use {\"name\": \"f\"}"},
      {harmony, tools,
       "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
       "<|constrain|>json<|message|>{\"a\":1}",
       "thought:hm|call:f={\"a\":1}"},
      {harmony,
       {},
       "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes <b>",
       "thought:hm|Yes <b>"},
      {harmony, {}, "no marks", "no marks"},
  };
  for (const PartsCase& one : cases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}}) {
      EXPECT_EQ(parsed(one.style, one.options, one.text, step), one.parts) << one.text << " by " << step;
    }
  }
}

TEST(AnswerParts, AreMarkedAsTheTemplateSays) {
  EXPECT_EQ(answer_style("… <tool_call> … <think> </think>").tools, ToolStyle::kHermes);
  EXPECT_TRUE(answer_style("… <tool_call> … <think> </think>").thinks);
  EXPECT_EQ(answer_style("{{ '<|python_tag|>' }}").tools, ToolStyle::kBareJson);
  EXPECT_EQ(answer_style("<|start|>assistant<|channel|>final<|message|>").tools, ToolStyle::kHarmony);
  EXPECT_EQ(answer_style("{{ messages }}").tools, ToolStyle::kNone);
}

}  // namespace
}  // namespace yoke::text
