// A conversation as it is saved and loaded: messages of the user and the model in turns, and the system's before them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/chat/sampling_arguments.h"

namespace yoke::chat {

struct ChatMessage {
  std::string role;  // "user" or "assistant"
  std::string content;
  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

struct Conversation {
  std::string model;  // the name of its folder
  std::optional<std::string> system;
  std::vector<ChatMessage> messages;
  friend bool operator==(const Conversation&, const Conversation&) = default;
};

std::string print_conversation(const Conversation& conversation);  // JSON
// kInvalid where it is no conversation: user and assistant in turns, the user first, all of it UTF-8.
Conversation parse_conversation(std::string_view json, std::string_view source);

void save_conversation(const std::filesystem::path& file, const Conversation& conversation);  // kConflict: it is there
Conversation load_conversation(const std::filesystem::path& file);

// "/set temperature 0.8": changes one of the arguments; "default" takes it back. Returns what is said about it, throws
// Error(kUsage) for a name or a value that cannot be.
std::string set_sampling(SamplingArguments& arguments, std::string_view name, std::string_view value);
// One line for each: its name and value.
std::string show_sampling(const text::SamplingOptions& options, std::int64_t answer_max);

}  // namespace yoke::chat
