#include "yoke/chat/engine_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include "yoke/base/progress.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/ops/backends.h"
#include "yoke/terminal/terminal_text.h"
#include "yoke/weights/model_folder.h"

namespace yoke::chat {

std::optional<std::string> cpu_note(const engine::EngineReady& ready) {
  const auto gpu = weights::find_gpu(DiskTree());
  if (!gpu || ready.backend.starts_with("cuda")) return std::nullopt;
  const auto reason = ops::why_no_cuda();
  if (!reason) return std::nullopt;  // the user has chosen another backend
  return fmt::format("this machine has an {}, but the model runs on the CPU ({}): {}", *gpu, ready.backend, *reason);
}

std::string context_note(const engine::EngineReady& ready) {
  if (ready.context_max >= ready.context_of_model) return {};
  return fmt::format("context of {} tokens (the model has {}; --context N makes room for more)", ready.context_max,
                     ready.context_of_model);
}

EngineSession::EngineSession(const terminal::Session& session, serve::EngineHostSpec spec) : session_(session) {
  std::optional<Progress> progress;
  client_.emplace(std::move(spec), serve::ClientHooks{.on_notice = [this](const std::string& text) { note(text); },
                                                      .on_load =
                                                          [&progress](const engine::LoadProgress& load) {
                                                            if (!progress)
                                                              progress.emplace("loading the model", load.total.value);
                                                            progress->update(load.done.value,
                                                                             yoke::to_string(load.done));
                                                          },
                                                      .on_stopped =
                                                          [this] {
                                                            if (in_line_) print("\n");
                                                          }});
}

serve::CompletedAnswer EngineSession::ask(engine::Request request, serve::AskHooks hooks) {
  return value_or_throw(try_ask(std::move(request), std::move(hooks)));
}

Result<serve::CompletedAnswer> EngineSession::try_ask(engine::Request request, serve::AskHooks hooks) {
  std::optional<Progress> progress;
  progress.emplace("reading the prompt", std::ssize(request.prompt));
  hooks.on_reading = [&progress](std::int64_t tokens) {
    if (progress) progress->update(tokens);
  };
  hooks.on_token = [&progress, on_token = std::move(hooks.on_token)](const text::SampledToken& token) {
    progress.reset();
    return !on_token || on_token(token);
  };
  return client_->try_ask(std::move(request), hooks);
}

void EngineSession::print(std::string_view text) {
  if (text.empty()) return;
  session_.print_as_is(text);
  in_line_ = text.back() != '\n';
}

void EngineSession::note(const std::string& text) {
  const bool same_screen = isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  std::string line = fmt::format("yoke: {}\n", terminal_safe(text));
  if (const auto columns = terminal_columns(STDERR_FILENO)) line = terminal::fold_lines(line, *columns);
  if (note_sink_) return note_sink_(line);
  if (in_line_ && same_screen) line.insert(0, "\n");
  if (same_screen) in_line_ = false;
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) { /* nowhere left to say it */
  }
}

}  // namespace yoke::chat
