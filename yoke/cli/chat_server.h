// `yoke chat --server URL`: the same conversation with a model that a server has loaded, by OpenAI's API.
#pragma once
#include <string>

#include "yoke/cli/chat_talk.h"

namespace yoke::cli {

// The exit status: of a pipe that of the first turn that failed.
int chat_with_server(const Session& session, const ChatArguments& arguments, const std::string& url);

}  // namespace yoke::cli
