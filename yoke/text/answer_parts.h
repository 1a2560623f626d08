// The parts of an answer: what is said, what was thought before, and calls of tools, as models mark them in their text.
//
//   AnswerStyle style = answer_style(chat.source());
//   AnswerParser parser(style, {.tools = {"get_weather"}});
//   for (const AnswerPart& part : parser.add(text)) …        // as the text comes
//   for (const AnswerPart& part : parser.finish()) …
//
// What may be the beginning of a mark is held back until it is certain, so that what was given out never changes. One
// thread at a time.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/tool_call_scanner.h"

namespace yoke::text {

enum class ToolStyle {
  kNone,
  kBareJson,  // {"name": …, "parameters": {…}} in place of an answer (Llama 3.1 and later)
  kHermes,    // <tool_call>{"name": …, "arguments": {…}}</tool_call> (Qwen 2.5, Qwen 3, Hermes)
  kHarmony,   // <|channel|>commentary to=functions.NAME … <|message|>{…} (gpt-oss)
};

struct AnswerStyle {
  ToolStyle tools = ToolStyle::kNone;
  bool thinks = false;  // <think> … </think> before the answer
};
AnswerStyle answer_style(std::string_view chat_template);

struct AnswerPart {
  enum class Kind { kText, kThought, kCall, kArguments };
  Kind kind = Kind::kText;
  std::string text;  // of kCall: the function's name; the arguments follow piece by piece
  friend bool operator==(const AnswerPart&, const AnswerPart&) = default;
};

struct AnswerParserOptions {
  std::vector<std::string> tools = {};  // names; without them nothing is taken for a call
  bool begins_in_thought = false;       // the prompt ends with <think>
};

class AnswerParser {
 public:
  AnswerParser(AnswerStyle style, AnswerParserOptions options);

  std::vector<AnswerPart> add(std::string_view text);
  std::vector<AnswerPart> finish();
  bool holds_text() const { return !held_.empty() || !blanks_.empty(); }

 private:
  enum class Mode { kStart, kThought, kText, kCall, kAfterCall, kHeader, kBody };

  bool step();
  bool step_start();
  bool step_thought();
  bool step_text();
  bool step_call();
  bool step_after_call();
  bool step_header();
  bool step_body();
  bool is_tool(std::string_view name) const;
  void give(AnswerPart::Kind kind, std::string text);
  void give_certain(AnswerPart::Kind kind, std::initializer_list<std::string_view> marks);
  void take_call(const std::vector<ToolCallPiece>& pieces);
  void give_up_call();

  const AnswerStyle style_;
  const AnswerParserOptions options_;
  Mode mode_;
  std::string held_;
  std::string blanks_;  // at the end of what was said: given out when more follows
  AnswerPart::Kind body_ = AnswerPart::Kind::kText;
  std::optional<ToolCallScanner> scanner_;
  std::string call_text_;  // of the call at hand, until it is certain that it is one
  bool is_certain_ = false;
  bool has_calls_ = false;
  bool has_text_ = false;
  std::vector<AnswerPart> out_;
};

}  // namespace yoke::text
