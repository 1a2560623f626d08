// The conversation of `yoke chat`: asks the engine, shows answers, obeys the commands that begin with '/'.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/chat/chat_input.h"
#include "yoke/chat/conversation.h"
#include "yoke/chat/engine_session.h"
#include "yoke/chat/sampling_arguments.h"
#include "yoke/serve/model_text.h"

namespace yoke::chat {

struct ChatArguments {
  std::string model;  // its folder
  SamplingArguments sampling;
  std::optional<std::string> system;
};

class ChatTalk {
 public:
  ChatTalk(terminal::Session& session, const ChatArguments& arguments, const serve::ModelText& text,
           EngineSession& engine);

  // The exit status: of a pipe that of the first turn that failed, since nobody was there to see it.
  int talk();

 private:
  bool take_line(const std::string& line);  // false: the user wants to go
  void obey(std::string_view words);
  bool obey_conversation(std::string_view command, const std::string& rest);  // /reset, /system, /save, /load, /retry
  void set(std::string_view words);
  void load(const std::string& file);
  void retry();
  std::string show() const;
  std::string stats() const;
  std::string first_line() const;
  void warn_of_ignored_system();

  std::vector<text::TokenId> encode(const std::optional<std::string>& system) const;
  std::vector<text::TokenId> encode_what_fits();
  void ask(std::string_view question);
  void answer(std::string_view question);
  void print_turn(const serve::CompletedAnswer& answered, const std::string& text);
  void report_failure(const Error& error);

  terminal::Session& session_;
  const serve::ModelText& text_;
  EngineSession& engine_;
  SamplingArguments sampling_;
  Conversation said_;
  bool at_terminal_;
  bool shows_rate_ = false;     // after each answer, by /set stats on
  bool full_reported_ = false;  // that this conversation has filled the context
  std::size_t asked_from_ = 0;  // as many messages were there before the question
  std::optional<serve::CompletedAnswer> last_;
  std::size_t last_prompt_ = 0;
  int status_ = kExitOk;
};

}  // namespace yoke::chat
