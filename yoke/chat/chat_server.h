// `yoke chat --server URL`: the same conversation with a model that a server has loaded, by OpenAI's API.
#pragma once
#include <string>

#include "yoke/chat/chat_talk.h"

namespace yoke::chat {

// The exit status: of a pipe that of the first turn that failed.
int chat_with_server(const terminal::Session& session, const ChatArguments& arguments, const std::string& url);

}  // namespace yoke::chat
