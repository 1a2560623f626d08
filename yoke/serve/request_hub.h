// The front of a server: owns requests, and outlives its engine. It starts the engine, hands requests to it and gives
// the tokens to their sinks. A rank that dies is replaced by the engine's host; an engine that ends altogether is
// started again here, with growing pauses, and every unfinished request goes on where it stood.
//
//   RequestHub hub(spec, {});
//   std::thread server(…);                       // submit(), cancel(), status(): any thread
//   hub.run();                                   // the owner's thread: until a signal, then until all is answered
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "yoke/serve/engine_host.h"
#include "yoke/serve/fair_queue.h"
#include "yoke/serve/node_states.h"
#include "yoke/serve/serve_metrics.h"

namespace yoke::serve {

// Where an answer goes. Called from the hub's thread alone.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void on_token(std::uint64_t id, const text::SampledToken& token) = 0;
  virtual void on_cached(std::uint64_t, std::int64_t) {}  // tokens of the prompt that were in the cache already
  virtual void on_states(const engine::LogitsEvent&) {}   // of the tokens of a prompt, in order
  // The last call for an id.
  virtual void on_end(std::uint64_t id, engine::FinishReason reason, const std::optional<Error>& error) = 0;
  virtual void on_wait() {}  // every few seconds while nothing comes
};

enum class EngineState { kLoading, kReady, kRestarting, kFailed };
constexpr auto enum_names(EngineState) {
  return std::array{std::pair{"loading", EngineState::kLoading}, std::pair{"ready", EngineState::kReady},
                    std::pair{"restarting", EngineState::kRestarting}, std::pair{"failed", EngineState::kFailed}};
}

struct RankLife {
  bool is_up = false;
  std::uint64_t restarts = 0;
};

struct HubStatus {
  EngineState state = EngineState::kLoading;
  std::string why;  // it is not ready
  std::optional<engine::EngineReady> ready;
  double loaded = 0;  // part of the weights, while it loads
  std::int64_t running = 0, waiting = 0;
  std::int64_t tokens_held = 0;  // of all running sequences
  bool is_draining = false;
  std::vector<std::string> notices;  // the last of what happened to ranks and rails
  std::vector<RankLife> ranks;       // as many as the engine has
};

struct HubOptions {
  int running_max = 32;
  int queue_max = 1024;  // of requests that wait; one more is refused
  Seconds drain_limit{30};
  std::function<void(const std::string&)> on_notice = {};  // for the log; from the hub's thread and others
  std::function<void()> on_ready = {};                     // each time that the engine has become ready
  std::function<void()> on_drain = {};                     // a signal came: no new requests
};

class RequestHub {
 public:
  RequestHub(EngineHostSpec spec, HubOptions options);
  RequestHub(const RequestHub&) = delete;
  RequestHub& operator=(const RequestHub&) = delete;

  // Until a signal, and then until all requests are answered or the drain limit is over. Throws what keeps the engine
  // from becoming ready the first time.
  void run();

  std::uint64_t new_id() { return ++last_id_; }
  // Before the first of several requests: Error(kUnavailable) where there is no engine, Error(kExhausted) where so many
  // more of this client do not fit into the queue.
  void check_room(std::size_t count, const std::string& client = {}) const;
  // The request's id is from new_id(). `limit`: after that it ends with Error(kTimeout). Where requests wait, clients
  // take turns (fair_queue.h).
  void submit(engine::Request request, std::shared_ptr<AnswerSink> sink, Seconds limit, const std::string& client = {});
  void cancel(std::uint64_t id);

  HubStatus status() const;
  ServeMetrics& metrics() { return metrics_; }
  const NodeStates& node_states() const { return node_states_; }
  const EngineHostSpec& spec() const { return spec_; }

 private:
  struct Pending {
    engine::Request request;  // with the answer so far
    std::shared_ptr<AnswerSink> sink;
    Instant submitted{}, last_event{}, last_wait{};
    std::optional<Instant> first_token, placed;
    Instant ends_at{};
    bool is_given = false;  // to the engine: it has a place
    bool is_running = false;
    bool is_cancelled = false;  // while no engine had it: the next sweep ends it
    bool is_timed_out = false;
    std::int64_t cached = 0;  // of the prompt, that was in the cache already
  };

  void start_engine();
  void lose_engine(const Error& reason);
  void fail_all(const Error& error);
  void take(const engine::EngineEvent& event);
  void take_states(const engine::LogitsEvent& event);
  void take_progress(const engine::PromptProgress& event);
  void take_token(const engine::TokenEvent& event);
  void take_end(const engine::RequestEnded& event);
  void finish(std::uint64_t id, engine::FinishReason reason, const std::optional<Error>& error);
  void sweep();
  void fill_places();  // under the mutex
  void lose_rank(std::optional<int> rank);
  void note(const std::string& text);
  bool wants_to_end();

  const job::DeferredSignals held_;  // first: all threads inherit it
  EngineHostSpec spec_;
  const HubOptions options_;
  ServeMetrics metrics_;
  NodeStates node_states_;
  std::atomic<std::uint64_t> last_id_{0};

  mutable std::mutex mutex_;  // of all that follows
  std::map<std::uint64_t, Pending> pending_;
  FairQueue queue_;                        // of these
  std::map<int, std::uint64_t> restarts_;  // of each rank
  std::set<int> lost_ranks_;
  EngineState state_ = EngineState::kLoading;
  std::string why_;
  std::optional<engine::EngineReady> ready_;
  double loaded_ = 0;
  std::deque<std::string> notices_;
  bool is_draining_ = false;
  std::unique_ptr<EngineHost> host_;  // changed by the owner's thread alone, under the mutex

  // Of the owner's thread.
  int failures_ = 0;  // starts in a row that did not become ready
  Instant next_start_{};
  Instant drain_end_{};
  Instant swept_{};
};

}  // namespace yoke::serve
