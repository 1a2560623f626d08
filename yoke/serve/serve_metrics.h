// What a server counts, as Prometheus reads it: the names that dashboards for vLLM know, and our own for ranks. Any
// thread may count.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/units.h"

namespace yoke::serve {

// A histogram of Prometheus: how many values were at most each bound.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  std::string text(const std::string& name, const std::string& help, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // the last: above all bounds
  double sum_ = 0;
};

// One end of a rail, on the node of the server.
struct LinkGauge {
  std::string node, rail, interface;
  bool is_up = false;
  std::int64_t sent_bytes = 0, received_bytes = 0;
};

struct RankGauge {
  int rank = 0;
  std::string node;
  bool is_up = false;
  std::uint64_t restarts = 0;
  std::int64_t weights_bytes = 0, cache_bytes = 0;
};

// What another server says of itself, where this one is the front before it; what it does not say is absent.
struct UpstreamGauges {
  std::optional<double> waiting, cache_usage;                      // waiting: of what it was given
  std::optional<double> preemptions, prefix_queries, prefix_hits;  // counted since its start
};

// The state at the moment of asking, which the counters do not know.
struct GaugeValues {
  std::string model;
  std::int64_t running = 0, waiting = 0;
  std::optional<double> cache_usage = {};  // part of the cache that running sequences take
  int ranks = 0;
  bool is_ready = false;
  std::size_t connections = 0;
  std::vector<LinkGauge> links = {};
  std::vector<RankGauge> ranks_each = {};
  std::optional<UpstreamGauges> upstream = {};  // of a front: what only an engine of ours knows is left out
};

class ServeMetrics {
 public:
  struct Finished {
    std::string reason;                              // stop, length, abort, error
    std::optional<std::int64_t> prompt_tokens = {};  // absent: not known, as of another server
    std::optional<std::int64_t> cached_tokens = {};  // of the prompt, that were in the cache; likewise
    std::int64_t answer_tokens = 0;
    Seconds total{};
    Seconds queued{};       // from the start until it had a place
    Seconds first_token{};  // from the start; 0: none came
  };
  void count_token(Seconds since_last, bool is_first, Instant now);
  void count_tokens(std::int64_t tokens, Instant now);  // whose times are not known
  void count_finished(const Finished& finished);
  void count_step(std::int64_t tokens, std::int64_t preemptions);
  void count_recovery(Seconds after);
  void count_engine_start();
  void count_resumption();  // an answer that goes on after the engine was lost
  void count_response(int status);
  // A request of our own for one token (a canary). `alone`: how long it took, where the engine had nothing else to do.
  void count_canary(std::optional<Seconds> alone, Instant now);
  void count_lost_canary(Instant now);  // of an engine that had been ready

  double tokens_per_second(Instant now) const;  // over the last five seconds
  std::uint64_t recoveries() const;
  std::uint64_t engine_starts() const;
  std::string text(const GaugeValues& gauges) const;

 private:
  // Under the mutex.
  void note_tokens(std::uint64_t tokens, Instant now);
  std::string engine_text(const GaugeValues& gauges, const std::string& labels) const;
  std::string prompts_text(const GaugeValues& gauges, const std::string& labels) const;
  std::string checks_text(const GaugeValues& gauges, const std::string& labels, Instant now) const;

  static constexpr std::size_t kSlots = 8;  // seconds that are remembered
  mutable std::mutex mutex_;
  Histogram first_token_;
  Histogram between_tokens_;
  Histogram total_;
  Histogram per_token_;
  Histogram queued_, prefill_, decode_;
  Histogram prompt_lengths_, answer_lengths_;
  Histogram step_tokens_;
  Histogram recovery_;
  std::map<std::string, std::uint64_t> finished_;
  std::map<int, std::uint64_t> responses_;
  std::uint64_t prompt_tokens_ = 0, answer_tokens_ = 0, recoveries_ = 0, engine_starts_ = 0;
  std::uint64_t cached_tokens_ = 0, cache_queries_ = 0, preemptions_ = 0, resumptions_ = 0;
  bool knows_prompts_ = false, knows_cached_ = false;  // of one request at least
  struct Slot {
    std::int64_t second = -1;
    std::uint64_t tokens = 0;
  };
  std::array<Slot, kSlots> slots_{};
  struct Canary {
    bool is_up = false;
    Instant when{};
  };
  std::optional<Canary> canary_;
  Seconds canary_time_{};
  std::optional<Instant> canary_timed_;
  std::string canary_text(const std::string& labels, Instant now) const;

 public:
  ServeMetrics();
};

// Several of these as one: a family that several have stands in it once, with the samples of all.
std::string joined_expositions(const std::vector<std::string>& texts);

}  // namespace yoke::serve
