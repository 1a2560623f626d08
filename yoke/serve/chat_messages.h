// The messages of a chat request, read and checked, as a template wants them; and the prompt that it makes of them.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/serve/completion_request.h"

namespace yoke::serve {

// A list of maps with role and content, and tool_calls whose arguments are JSON and no longer text.
Document read_messages(const Document& body);

struct ChatPrompt {
  std::vector<text::TokenId> ids;
  bool begins_in_thought = false;  // the template has opened one for the answer
};
// `tools`: a list as OpenAI's API has it, or null.
ChatPrompt encode_chat_prompt(const Document& body, const Document& tools, const ServedModel& model);

}  // namespace yoke::serve
