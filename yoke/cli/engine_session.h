// What run, chat and verify share: the engine's options on the command line, and a client (serve/client.h) that shows
// what happens in the terminal.
//
//   EngineSession engine(session, host_spec(session, arguments));
//   const Answered answer = engine.ask(request, {.on_token = [&](const Sampled& token) { … return true; }});
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/cli/command.h"
#include "yoke/engine/request_limits.h"
#include "yoke/serve/client.h"

namespace yoke {

struct EngineArguments {
  std::string model;
  std::optional<int> ranks, nodes, threads, context;
  std::string transport = "auto", cache_type = "f32";
};
void declare_engine(OptionTable& table, EngineArguments& arguments);

// Throws Error(kUsage) for numbers that make no sense. Reads the cluster file, and whether a launcher started us.
EngineHostSpec host_spec(const Session& session, const EngineArguments& arguments);

// Where a launcher started this process as another rank than the first: takes part until the engine ends, says nothing,
// and returns the exit status.
std::optional<int> follow_if_not_first(const EngineHostSpec& spec);

// A client whose notes, progress and text share the terminal.
class EngineSession {
 public:
  // Returns when the model is loaded; throws what the engine says instead.
  EngineSession(const Session& session, EngineHostSpec spec);

  EngineClient& client() { return *client_; }
  const EngineReady& ready() const { return client_->ready(); }
  // As the client's, with progress while the prompt is read.
  Answered ask(Request request, AskHooks hooks);
  Result<Answered> try_ask(Request request, AskHooks hooks);

  // Standard output as text goes there piece by piece, so that notes begin on a line of their own.
  void print(std::string_view text);
  void note(const std::string& text);  // on standard error

 private:
  const Session& session_;
  bool in_line_ = false;                // something was printed, and no line end after it
  std::optional<EngineClient> client_;  // last: it calls the above
};

}  // namespace yoke
