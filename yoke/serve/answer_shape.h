// What an answer must be: tools that the model may call or must call, and JSON of a schema, as parameters of a request
// say; and the grammar that holds the model to it.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/answer_parts.h"

namespace yoke::serve {

struct ToolUse {
  enum class Choice { kNone, kAuto, kMust };
  Document tools;                  // for the template: a list, or null
  std::vector<std::string> names;  // that the answer may call
  Choice choice = Choice::kNone;
};

// Of `tools` and `tool_choice`; ApiError where they make no sense or the model's template has none.
ToolUse read_tool_use(const Document& body, text::AnswerStyle style);

// Of `response_format` and the tools that must be called: as text/grammar.h reads it, empty where anything goes.
std::string read_answer_grammar(const Document& body, const ToolUse& tools, text::AnswerStyle style,
                                bool begins_in_thought);

}  // namespace yoke::serve
