// What the user of a chat says: messages from a terminal with an editor, or the lines of a pipe or a dumb terminal.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/chat/engine_session.h"

namespace yoke::chat {

// Joins lines that are one message: between """ and """, and where a line ends with a backslash.
class MessageJoiner {
 public:
  // The message, once it is complete.
  std::optional<std::string> add(std::string_view line);
  bool is_empty() const { return !in_quotes_ && message_.empty(); }
  void clear() { *this = {}; }

 private:
  std::string message_;
  bool in_quotes_ = false;
};

struct ChatLine {
  enum class Kind { kMessage, kInterrupt, kEnd } kind = Kind::kEnd;
  std::string text = {};
  int signal_number = 0;
};

class ChatInput {
 public:
  virtual ~ChatInput() = default;
  // Meanwhile what happens to the engine is shown.
  virtual ChatLine wait() = 0;
};

std::unique_ptr<ChatInput> chat_from_terminal(EngineSession& engine);  // needs one that takes escapes
enum class PromptShown { kNo, kYes };
std::unique_ptr<ChatInput> chat_from_lines(EngineSession& engine, PromptShown prompt);

}  // namespace yoke::chat
