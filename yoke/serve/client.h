// The client of an engine: starts it, waits until the model is loaded, and asks one request at a time. What happens
// meanwhile goes to hooks, in the caller's thread.
//
//   EngineClient client(spec, {.on_notice = [](const std::string& text) { … }});
//   const CompletedAnswer answer = client.ask(request, {.on_token = [&](const SampledToken& token) { … return true;
//   }});
//
// One thread owns it.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/result.h"
#include "yoke/serve/engine_host.h"

namespace yoke::serve {

struct CompletedAnswer {
  std::vector<text::SampledToken> tokens;
  engine::FinishReason finish = engine::FinishReason::kStop;
  Seconds prefill{};         // until the first token, or the logits
  Seconds decode{};          // from then to the last
  bool interrupted = false;  // by Ctrl-C

  double prefill_rate(std::size_t prompt_tokens) const;  // tokens per second; 0 where there are none
  double decode_rate() const;
};

enum class InterruptMeans {
  kTheEnd,        // of the program
  kAnswerEnough,  // the answer ends with what there is
};

struct AskHooks {
  std::function<bool(const text::SampledToken&)> on_token = {};  // false: enough, the answer ends here
  std::function<void(const engine::LogitsEvent&)> on_logits = {};
  std::function<void(std::int64_t tokens)> on_reading =
      {};  // again and again until the first token: how many were read
  InterruptMeans interrupt = InterruptMeans::kTheEnd;
};

struct ClientHooks {
  std::function<void(const std::string&)> on_notice = {};  // what happens to ranks and rails, in words
  std::function<void(const engine::LoadProgress&)> on_load = {};
  std::function<void()> on_stopped = {};  // a signal ended all ranks, and Error(kInterrupted) follows
};

class EngineClient {
 public:
  // Returns when the model is loaded; throws what the engine says instead.
  EngineClient(EngineHostSpec spec, ClientHooks hooks);

  const engine::EngineReady& ready() const { return *ready_; }
  Seconds load_time() const { return load_time_; }
  const std::vector<engine::EngineRecovered>& recoveries() const { return recoveries_; }

  // To the end of the answer. Throws where the engine refuses the request, and what ends the engine.
  CompletedAnswer ask(engine::Request request, const AskHooks& hooks);
  // The same, with what is wrong with this request alone as a result: the engine goes on.
  Result<CompletedAnswer> try_ask(engine::Request request, const AskHooks& hooks);
  // What the steps so far were made of, with traces where the engine keeps them; nothing where the engine does not say
  // so in time.
  std::optional<engine::EngineAccount> account(Seconds limit);
  // While nothing is asked: tells what happens, for so long at most. What ends the engine is thrown here too.
  void idle(Seconds time);
  std::optional<int> take_interrupt() { return host_->take_interrupt(); }
  // Ends all ranks, then throws Error(kInterrupted).
  [[noreturn]] void end_for(int signal_number);

 private:
  class Asking;
  void wait_until_ready();
  void report_notices();
  void take_recovery(const engine::EngineRecovered& recovered);

  const ClientHooks hooks_;
  std::mutex notices_mutex_;
  std::vector<std::string> notices_;  // from the host's threads
  std::optional<engine::EngineReady> ready_;
  Seconds load_time_{};
  std::vector<engine::EngineRecovered> recoveries_;
  std::uint64_t last_id_ = 0;
  std::optional<EngineHost> host_;  // last: its threads use the above
};

// "2 ranks on spark-1, spark-2; direct: …", for people.
std::string describe(const engine::EngineReady& ready);

}  // namespace yoke::serve
