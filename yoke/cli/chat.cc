// yoke chat: a conversation in the terminal, or of the lines of a pipe. What is said is in chat/chat_talk.h.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/chat/chat_server.h"
#include "yoke/chat/chat_talk.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_options.h"

namespace yoke::cli {
namespace {

struct ChatCommand {
  EngineArguments engine;
  std::optional<std::string> server;
  chat::ChatArguments chat;
};

int run_chat(Session& session, ChatCommand command) {
  chat::ChatArguments& a = command.chat;
  if (command.server) {
    if (!command.engine.model.empty()) {
      throw Error(ErrorCode::kUsage, "a MODEL is of no use with --server: the server has it loaded", "leave MODEL out");
    }
    return chat::chat_with_server(session, a, *command.server);
  }
  settle_model(command.engine);
  a.model = command.engine.model;
  const serve::EngineHostSpec spec = host_spec(session, command.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const serve::ModelText text = serve::ModelText::load(a.model);
  if (!text.chat) {
    if (text.chat.error().code() != ErrorCode::kNotFound) throw Error(text.chat.error());
    throw Error(ErrorCode::kNotFound, fmt::format("'{}' has no chat template", a.model),
                "it continues plain text: yoke run MODEL -p TEXT");
  }
  if (a.system) serve::check_utf8(*a.system, "--system");
  // Mistakes are reported before the model is loaded.
  text::check_sampling(chat::sampling_of(a.sampling, text),
                       static_cast<text::TokenId>(engine::request_limits(spec.engine).vocabulary));
  chat::EngineSession engine(session, spec);
  return chat::ChatTalk(session, a, text, engine).talk();
}

}  // namespace

CommandRow chat_command() {
  return {
      .name = "chat",
      .summary = "a conversation with a model, in the terminal",
      .description =
          "Loads a model as 'yoke run' does and talks with it by its chat template. A terminal has line editing and "
          "a history; several lines are one message where they are pasted, typed with Alt-Enter or put between "
          "\"\"\" and \"\"\". Ctrl-C stops an answer and not the program; Ctrl-D ends. When the context is full yoke "
          "drops the oldest turns and says so. /help lists the commands: settings, another answer, saving. From a pipe "
          "each line is a turn, and the exit status is not 0 where a turn failed; with --json every line is a message, "
          "also one that begins with '/', and each "
          "turn answers with a line of JSON: an answer, or an error.",
      .examples = {{"yoke chat", "the small model that ships with yoke, on this machine"},
                   {"yoke chat models/nano --ranks 2", "over two ranks: kill one, and it goes on"},
                   {"yoke chat --server http://127.0.0.1:8000", "the model that 'yoke serve' has loaded"},
                   {"printf 'Hi\\nWhich cable joins two units?\\n' | yoke chat", "lines of a pipe"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<ChatCommand>();
        table.value("--system", "TEXT", "a system message before the conversation", a->chat.system);
        table.value("--server", "URL", "talk to the model of this server (http://127.0.0.1:8000); no MODEL then",
                    a->server);
        declare_sampling(table, a->chat.sampling);
        declare_engine(table, a->engine, Presence::kOptional);
        return [a](Session& session) { return run_chat(session, *a); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
