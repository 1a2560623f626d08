#include "yoke/chat/chat_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/files.h"
#include "yoke/base/line_buffer.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/terminal/line_editor.h"

namespace yoke::chat {
namespace {

using namespace literals;

constexpr std::string_view kQuotes = R"(""")";
constexpr int kTurnMs = 50;

// Where nothing can be kept the history lives as long as the chat.
std::filesystem::path history_file() {
  const auto folder = try_to([] { return user_data_dir(); });
  return folder ? *folder / "chat_history" : std::filesystem::path();
}

class EditedInput final : public ChatInput {
 public:
  explicit EditedInput(EngineSession& engine)
      : engine_(engine),
        editor_({.history_file = history_file(),
                 .idle = [this] { engine_.client().idle(0_s); },
                 .interrupted =
                     [this] {
                       signal_ = engine_.client().take_interrupt();
                       return signal_.has_value();
                     }}) {}

  ChatLine wait() override {
    engine_.set_note_sink([this](std::string_view lines) { editor_.print_above(lines); });
    const auto without_sink = [this](ChatLine line) {
      engine_.set_note_sink({});
      return line;
    };
    while (true) {
      const terminal::TypedLine typed = editor_.read(joiner_.is_empty() ? "> " : "... ");
      if (typed.kind == terminal::TypedLine::Kind::kInterrupt) {
        joiner_.clear();
        return without_sink({.kind = ChatLine::Kind::kInterrupt, .signal_number = *signal_});
      }
      if (typed.kind == terminal::TypedLine::Kind::kEnd) return without_sink({});
      if (auto message = joiner_.add(typed.text)) {
        return without_sink({.kind = ChatLine::Kind::kMessage, .text = *std::move(message)});
      }
    }
  }

 private:
  EngineSession& engine_;
  std::optional<int> signal_;
  MessageJoiner joiner_;
  terminal::LineEditor editor_;
};

class LineInput final : public ChatInput {
 public:
  LineInput(EngineSession& engine, PromptShown prompt) : engine_(engine), prompt_(prompt) {}

  ChatLine wait() override {
    if (prompt_ == PromptShown::kYes) engine_.print("> ");
    while (true) {
      if (auto line = buffer_.take_line(ended_ ? LineBuffer::More::kNone : LineBuffer::More::kMayCome)) {
        return {.kind = ChatLine::Kind::kMessage, .text = *std::move(line)};
      }
      if (ended_) return {};
      if (const auto number = engine_.client().take_interrupt()) {
        return {.kind = ChatLine::Kind::kInterrupt, .signal_number = *number};
      }
      engine_.client().idle(0_s);
      read_more();
    }
  }

 private:
  void read_more() {
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (poll(&waiting, 1, kTurnMs) <= 0) return;
    char buffer[4096];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count > 0) buffer_.append({buffer, static_cast<std::size_t>(count)});
    ended_ = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
  }

  EngineSession& engine_;
  PromptShown prompt_;
  LineBuffer buffer_;
  bool ended_ = false;
};

}  // namespace

std::optional<std::string> MessageJoiner::add(std::string_view line) {
  const bool opens = !in_quotes_ && message_.empty() && line.starts_with(kQuotes);
  if (opens) {
    in_quotes_ = true;
    line.remove_prefix(kQuotes.size());
  }
  if (in_quotes_) {
    const std::size_t end = line.find(kQuotes);
    message_.append(line.substr(0, end));
    if (end == std::string_view::npos) {
      // A line end right behind the opening quotes is no part of the message.
      if (!(opens && line.empty())) message_ += '\n';
      return std::nullopt;
    }
    in_quotes_ = false;
    return std::exchange(message_, {});
  }
  if (line.ends_with('\\')) {
    message_.append(line.substr(0, line.size() - 1)).push_back('\n');
    return std::nullopt;
  }
  message_.append(line);
  return std::exchange(message_, {});
}

std::unique_ptr<ChatInput> chat_from_terminal(EngineSession& engine) { return std::make_unique<EditedInput>(engine); }

std::unique_ptr<ChatInput> chat_from_lines(EngineSession& engine, PromptShown prompt) {
  return std::make_unique<LineInput>(engine, prompt);
}

}  // namespace yoke::chat
