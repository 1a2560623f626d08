// A client (serve/client.h) that shows what happens in the terminal.
//
//   EngineSession engine(session, spec);
//   const CompletedAnswer answer = engine.ask(request, {.on_token = [&](const SampledToken& token) { … return true;
//   }});
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/serve/client.h"
#include "yoke/terminal/session.h"

namespace yoke::chat {

// A client whose notes, progress and text share the terminal.
class EngineSession {
 public:
  // Returns when the model is loaded; throws what the engine says instead.
  EngineSession(const terminal::Session& session, serve::EngineHostSpec spec);

  serve::EngineClient& client() { return *client_; }
  const engine::EngineReady& ready() const { return client_->ready(); }
  // As the client's, with progress while the prompt is read.
  serve::CompletedAnswer ask(engine::Request request, serve::AskHooks hooks);
  Result<serve::CompletedAnswer> try_ask(engine::Request request, serve::AskHooks hooks);

  // Standard output as text goes there piece by piece, so that notes begin on a line of their own.
  void print(std::string_view text);
  void note(const std::string& text);  // on standard error
  // While a line is typed: the one that shows it puts notes above it. Empty: as before.
  void set_note_sink(std::function<void(std::string_view)> sink) { note_sink_ = std::move(sink); }

 private:
  const terminal::Session& session_;
  bool in_line_ = false;  // something was printed, and no line end after it
  std::function<void(std::string_view)> note_sink_;
  std::optional<serve::EngineClient> client_;  // last: it calls the above
};

// Of a context that is shorter than the model's: how to get more. Empty otherwise.
std::string context_note(const engine::EngineReady& ready);

// Of a machine with a GPU that yoke cannot use: one sentence that the model runs on the CPU, and why.
std::optional<std::string> cpu_note(const engine::EngineReady& ready);

}  // namespace yoke::chat
