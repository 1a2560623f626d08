// Requests to /v1/messages (Anthropic's shape) and /v1/responses as requests to /v1/chat/completions: what both can say
// is translated, what only they can say is refused with the name of the parameter.
#pragma once
#include "yoke/base/document.h"

namespace yoke::serve {

// `kCount`: of /v1/messages/count_tokens, which has no max_tokens.
enum class MessagesUse { kAnswer, kCount };
Document chat_body_of_messages(const Document& body, MessagesUse use = MessagesUse::kAnswer);
Document chat_body_of_responses(const Document& body);

}  // namespace yoke::serve
