// What run, chat and verify share: the engine's options on the command line, its start with progress, and the loop
// that asks it and shows what happens meanwhile.
//
//   EngineSession engine(session, host_spec(session, arguments));
//   const Answered answer = engine.ask(request, {.on_token = [&](const Sampled& token) { … return true; }});
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/result.h"
#include "yoke/cli/command.h"
#include "yoke/engine/scheduler.h"
#include "yoke/serve/engine_host.h"

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

// What the model takes, by its config.json alone: for mistakes to be told before it is loaded. Memory may allow less.
SchedulerLimits request_limits(const EngineOptions& engine);

struct Answered {
  std::vector<Sampled> tokens;
  FinishReason finish = FinishReason::kStop;
  Seconds prefill{};         // until the first token, or the logits
  Seconds decode{};          // from then to the last
  bool interrupted = false;  // by Ctrl-C

  double prefill_rate(std::size_t prompt_tokens) const;  // tokens per second; 0 where there is none to tell
  double decode_rate() const;
};

enum class InterruptMeans {
  kTheEnd,        // of the program
  kAnswerEnough,  // the answer ends with what there is
};

struct AskHooks {
  std::function<bool(const Sampled&)> on_token = {};  // false: enough, the answer ends here
  std::function<void(const LogitsMade&)> on_logits = {};
  InterruptMeans interrupt = InterruptMeans::kTheEnd;
};

class EngineSession {
 public:
  // Returns when the model is loaded; throws what the engine says instead.
  EngineSession(const Session& session, EngineHostSpec spec);

  const EngineReady& ready() const { return *ready_; }
  Seconds load_time() const { return load_time_; }
  const std::vector<EngineRecovered>& recoveries() const { return recoveries_; }

  // To the end of the answer. Throws where the engine refuses the request, and what ends the engine.
  Answered ask(Request request, const AskHooks& hooks);
  // The same, with what is wrong with this request alone as a result: the engine goes on.
  Result<Answered> try_ask(Request request, const AskHooks& hooks);
  // While nothing is asked: shows what happens, for so long at most. What ends the engine is thrown here too.
  void idle(Seconds time);
  std::optional<int> take_interrupt() { return host_->take_interrupt(); }
  // Ends all ranks, then throws Error(kInterrupted).
  [[noreturn]] void end_for(int signal_number);

  // Standard output as text goes there piece by piece, so that notes begin on a line of their own.
  void print(std::string_view text);
  void note(const std::string& text);  // on standard error

 private:
  void wait_until_ready();
  void show_notices();
  void take_recovery(const EngineRecovered& recovered);

  const Session& session_;
  std::mutex notices_mutex_;
  std::vector<std::string> notices_;  // from the host's threads
  std::optional<EngineReady> ready_;
  Seconds load_time_{};
  std::vector<EngineRecovered> recoveries_;
  std::uint64_t last_id_ = 0;
  bool in_line_ = false;            // something was printed, and no line end after it
  std::optional<EngineHost> host_;  // last: its threads use the above
};

// "2 ranks (spark-1, spark-2), direct: …", for people.
std::string describe(const EngineReady& ready);

}  // namespace yoke
