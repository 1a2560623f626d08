#include "yoke/serve/serve_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/text.h"

namespace yoke::serve {
namespace {

// vLLM's own bounds, so that panels made for it fit.
const std::vector<double> kFirstTokenBounds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                               0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const std::vector<double> kTokenBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15,
                                          0.2,   0.3,    0.4,   0.5,  0.75,  1,    2.5,   5};
const std::vector<double> kRequestBounds = {0.3, 0.5, 0.8, 1,  1.5, 2,  2.5, 5,   10,
                                            15,  20,  30,  40, 50,  60, 120, 240, 480};
const std::vector<double> kLengthBounds = {1,   2,    5,    10,   20,    50,    100,   200,
                                           500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
const std::vector<double> kStepBounds = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const std::vector<double> kRecoveryBounds = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60};

constexpr Seconds kCanaryAge{60};

std::int64_t second_of(Instant now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

// What a label's value may hold (exposition format).
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string gauge_text(std::string_view name, std::string_view help, const std::string& labels, double value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{0}{{{2}}} {3}\n", name, help, labels, value);
}
std::string counter_text(std::string_view name, std::string_view help, const std::string& labels, double value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n{0}{{{2}}} {3}\n", name, help, labels, value);
}

// One family with a sample for each of a list; nothing where the list is empty.
template <class Item, class Labels, class Value>
std::string family_text(std::string_view name, std::string_view type, std::string_view help,
                        const std::vector<Item>& items, const Labels& labels, const Value& value) {
  if (items.empty()) return {};
  std::string out = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  for (const Item& item : items) out += fmt::format("{}{{{}}} {}\n", name, labels(item), value(item));
  return out;
}

std::string links_text(const std::string& labels, const std::vector<LinkGauge>& links) {
  const auto of = [&](const LinkGauge& link) {
    return fmt::format("{},node=\"{}\",rail=\"{}\",interface=\"{}\"", labels, label_value(link.node),
                       label_value(link.rail), label_value(link.interface));
  };
  std::string out;
  out += family_text("yoke_link_up", "gauge", "1 while the interface of a rail has a carrier.", links, of,
                     [](const LinkGauge& link) { return link.is_up ? 1 : 0; });
  out += family_text("yoke_link_sent_bytes_total", "counter", "Bytes that the interface of a rail has sent.", links, of,
                     [](const LinkGauge& link) { return link.sent_bytes; });
  out += family_text("yoke_link_received_bytes_total", "counter", "Bytes that the interface of a rail has received.",
                     links, of, [](const LinkGauge& link) { return link.received_bytes; });
  return out;
}

std::string ranks_text(const std::string& labels, const std::vector<RankGauge>& ranks) {
  const auto of = [&](const RankGauge& rank) {
    return fmt::format("{},rank=\"{}\",node=\"{}\"", labels, rank.rank, label_value(rank.node));
  };
  std::string out;
  out += family_text("yoke_rank_up", "gauge", "1 while the rank computes; 0 while it is started again.", ranks, of,
                     [](const RankGauge& rank) { return rank.is_up ? 1 : 0; });
  out += family_text("yoke_rank_restarts_total", "counter", "Times that the rank was lost and started again.", ranks,
                     of, [](const RankGauge& rank) { return rank.restarts; });
  out += family_text("yoke_rank_weights_bytes", "gauge", "Weights that the rank holds.", ranks, of,
                     [](const RankGauge& rank) { return rank.weights_bytes; });
  out += family_text("yoke_rank_cache_bytes", "gauge", "Memory of the rank's cache.", ranks, of,
                     [](const RankGauge& rank) { return rank.cache_bytes; });
  return out;
}

}  // namespace

std::string joined_expositions(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return texts.front();
  std::vector<std::string> names;  // in the order of their first appearance
  std::map<std::string, std::string> heads, samples;
  for (const std::string& text : texts) {
    std::string name;
    for (const std::string& line : split(text, '\n')) {
      if (line.empty()) continue;
      if (line.starts_with("# HELP ")) {
        name = split(line, ' ').at(2);
        if (heads.emplace(name, "").second) names.push_back(name);
      }
      const bool is_head = line.front() == '#';
      std::string& to = is_head ? heads[name] : samples[name];
      if (!is_head || to.find(line) == std::string::npos) to += line + "\n";
    }
  }
  std::string out;
  for (const std::string& name : names) out += heads[name] + samples[name];
  return out;
}

void Histogram::add(double value) {
  const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<std::size_t>(place - bounds_.begin())];
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help, const std::string& labels) const {
  std::string out = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    total += counts_[i];
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bounds_[i], total);
  }
  total += counts_.back();
  out += fmt::format("{0}_bucket{{{1},le=\"+Inf\"}} {2}\n{0}_sum{{{1}}} {3}\n{0}_count{{{1}}} {2}\n", name, labels,
                     total, sum_);
  return out;
}

ServeMetrics::ServeMetrics()
    : first_token_(kFirstTokenBounds),
      between_tokens_(kTokenBounds),
      total_(kRequestBounds),
      per_token_(kTokenBounds),
      queued_(kRequestBounds),
      prefill_(kRequestBounds),
      decode_(kRequestBounds),
      prompt_lengths_(kLengthBounds),
      answer_lengths_(kLengthBounds),
      step_tokens_(kStepBounds),
      recovery_(kRecoveryBounds) {}

void ServeMetrics::count_token(Seconds since_last, bool is_first, Instant now) {
  const std::lock_guard lock(mutex_);
  (is_first ? first_token_ : between_tokens_).add(since_last.value);
  note_tokens(1, now);
}

void ServeMetrics::count_tokens(std::int64_t tokens, Instant now) {
  if (tokens <= 0) return;
  const std::lock_guard lock(mutex_);
  note_tokens(static_cast<std::uint64_t>(tokens), now);
}

void ServeMetrics::note_tokens(std::uint64_t tokens, Instant now) {
  answer_tokens_ += tokens;
  const std::int64_t second = second_of(now);
  Slot& slot = slots_[static_cast<std::size_t>(second) % kSlots];
  if (slot.second != second) slot = {second, 0};
  slot.tokens += tokens;
}

void ServeMetrics::count_finished(const Finished& finished) {
  const std::lock_guard lock(mutex_);
  ++finished_[finished.reason];
  if (const auto prompt = finished.prompt_tokens) {
    knows_prompts_ = true;
    prompt_tokens_ += static_cast<std::uint64_t>(*prompt);
    prompt_lengths_.add(static_cast<double>(*prompt));
    if (finished.cached_tokens) {
      knows_cached_ = true;
      cache_queries_ += static_cast<std::uint64_t>(*prompt);
      cached_tokens_ += static_cast<std::uint64_t>(*finished.cached_tokens);
    }
  }
  total_.add(finished.total.value);
  answer_lengths_.add(static_cast<double>(finished.answer_tokens));
  if (finished.first_token.value <= 0) return;
  queued_.add(finished.queued.value);
  prefill_.add((finished.first_token - finished.queued).value);
  decode_.add((finished.total - finished.first_token).value);
  if (finished.answer_tokens > 1) {
    per_token_.add((finished.total - finished.first_token).value / static_cast<double>(finished.answer_tokens - 1));
  }
}

void ServeMetrics::count_step(std::int64_t tokens, std::int64_t preemptions) {
  const std::lock_guard lock(mutex_);
  step_tokens_.add(static_cast<double>(tokens));
  preemptions_ += static_cast<std::uint64_t>(preemptions);
}

void ServeMetrics::count_recovery(Seconds after) {
  const std::lock_guard lock(mutex_);
  ++recoveries_;
  recovery_.add(after.value);
}

void ServeMetrics::count_engine_start() {
  const std::lock_guard lock(mutex_);
  ++engine_starts_;
}

void ServeMetrics::count_resumption() {
  const std::lock_guard lock(mutex_);
  ++resumptions_;
}

void ServeMetrics::count_response(int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
}

void ServeMetrics::count_canary(std::optional<Seconds> alone, Instant now) {
  const std::lock_guard lock(mutex_);
  canary_ = {.is_up = true, .when = now};
  if (!alone) return;
  canary_time_ = *alone;
  canary_timed_ = now;
}

void ServeMetrics::count_lost_canary(Instant now) {
  const std::lock_guard lock(mutex_);
  canary_ = {.is_up = false, .when = now};
}

// Nobody may have asked for a long time: what was true then is not shown as if it were now.
std::string ServeMetrics::canary_text(const std::string& labels, Instant now) const {
  std::string out;
  if (canary_ && to_seconds(now - canary_->when) < kCanaryAge) {
    out += gauge_text("yoke_canary_up", "1 if the last request for one token of yoke's own was answered.", labels,
                      canary_->is_up ? 1 : 0);
  }
  if (canary_timed_ && to_seconds(now - *canary_timed_) < kCanaryAge) {
    out += gauge_text("yoke_canary_seconds", "How long the last of these took with nothing else to do.", labels,
                      canary_time_.value);
  }
  return out;
}

double ServeMetrics::tokens_per_second(Instant now) const {
  constexpr std::int64_t kWindow = 5;
  const std::lock_guard lock(mutex_);
  const std::int64_t second = second_of(now);
  std::uint64_t tokens = 0;
  for (const Slot& slot : slots_) {
    if (slot.second >= second - kWindow && slot.second < second) tokens += slot.tokens;
  }
  return static_cast<double>(tokens) / kWindow;
}

std::uint64_t ServeMetrics::recoveries() const {
  const std::lock_guard lock(mutex_);
  return recoveries_;
}

std::uint64_t ServeMetrics::engine_starts() const {
  const std::lock_guard lock(mutex_);
  return engine_starts_;
}

// What an engine of ours counts; of another server what it says.
std::string ServeMetrics::engine_text(const GaugeValues& gauges, const std::string& labels) const {
  const std::optional<UpstreamGauges>& other = gauges.upstream;
  // What another server runs is what it was given, less its queue. Its own count is some seconds old.
  const auto given = static_cast<double>(gauges.running);
  const double queued = other ? std::min(other->waiting.value_or(0), given) : 0;
  std::string out;
  out += gauge_text("vllm:num_requests_running", "Requests whose prompt is being read or that are answered.", labels,
                    given - queued);
  out += gauge_text("vllm:num_requests_waiting", "Requests that wait for a place.", labels,
                    static_cast<double>(gauges.waiting) + queued);
  if (const auto usage = other ? other->cache_usage : gauges.cache_usage) {
    out +=
        gauge_text("vllm:kv_cache_usage_perc", "Part of the cache that running requests take, 0 to 1.", labels, *usage);
  }
  const auto preemptions = other ? other->preemptions : std::optional(static_cast<double>(preemptions_));
  if (preemptions) {
    out += counter_text("vllm:num_preemptions_total", "Sequences that were put off for want of cache.", labels,
                        *preemptions);
  }
  if (!other) out += step_tokens_.text("vllm:iteration_tokens_total", "Tokens of a step of the engine.", labels);
  return out;
}

std::string ServeMetrics::prompts_text(const GaugeValues& gauges, const std::string& labels) const {
  const std::optional<UpstreamGauges>& other = gauges.upstream;
  std::string out;
  if (!other || knows_prompts_) {
    out += counter_text("vllm:prompt_tokens_total", "Tokens of prompts of finished requests.", labels,
                        static_cast<double>(prompt_tokens_));
    out += prompt_lengths_.text("vllm:request_prompt_tokens", "Tokens of a prompt.", labels);
  }
  auto queries = other ? other->prefix_queries : std::nullopt, hits = other ? other->prefix_hits : std::nullopt;
  if (!queries && (!other || knows_cached_)) {
    queries = static_cast<double>(cache_queries_);
    hits = static_cast<double>(cached_tokens_);
  }
  if (!queries || !hits) return out;
  out += counter_text("vllm:prefix_cache_queries_total", "Tokens of prompts that were looked for in the cache.", labels,
                      *queries);
  out += counter_text("vllm:prefix_cache_hits_total", "Tokens of prompts that were in the cache.", labels, *hits);
  return out;
}

std::string ServeMetrics::checks_text(const GaugeValues& gauges, const std::string& labels, Instant now) const {
  std::string out =
      gauge_text("yoke_engine_ready", "1 while the engine takes requests.", labels, gauges.is_ready ? 1 : 0);
  out += canary_text(labels, now);
  out += recovery_.text("yoke_recovery_seconds", "From the loss of a rank to the next step.", labels);
  if (gauges.upstream) {
    return out + counter_text("yoke_resumptions_total", "Answers that went on after the engine was lost.", labels,
                              static_cast<double>(resumptions_));
  }
  out += counter_text("yoke_engine_starts_total", "Times that the whole engine was started.", labels,
                      static_cast<double>(engine_starts_));
  return out + gauge_text("yoke_ranks", "Ranks of the engine.", labels, gauges.ranks);
}

std::string ServeMetrics::text(const GaugeValues& gauges) const {
  const Instant now = real_clock().now();
  const double rate = tokens_per_second(now);
  const std::lock_guard lock(mutex_);
  const std::string labels = fmt::format("model_name=\"{}\"", label_value(gauges.model));
  std::string out = engine_text(gauges, labels) + prompts_text(gauges, labels);
  out += counter_text("vllm:generation_tokens_total", "Tokens that were generated.", labels,
                      static_cast<double>(answer_tokens_));
  out += "# HELP vllm:request_success_total Finished requests.\n# TYPE vllm:request_success_total counter\n";
  for (const auto& [reason, count] : finished_) {
    out += fmt::format("vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels, reason, count);
  }
  out += first_token_.text("vllm:time_to_first_token_seconds", "From a request to its first token.", labels);
  out += between_tokens_.text("vllm:inter_token_latency_seconds", "Between two tokens of an answer.", labels);
  out += per_token_.text("vllm:request_time_per_output_token_seconds", "Mean time per token of an answer.", labels);
  out += total_.text("vllm:e2e_request_latency_seconds", "From a request to the end of its answer.", labels);
  out += queued_.text("vllm:request_queue_time_seconds", "From a request until it has a place.", labels);
  out += prefill_.text("vllm:request_prefill_time_seconds", "From its place to the first token.", labels);
  out += decode_.text("vllm:request_decode_time_seconds", "From the first token to the end.", labels);
  out += answer_lengths_.text("vllm:request_generation_tokens", "Tokens of an answer.", labels);
  out += gauge_text("yoke_tokens_per_second", "Generated tokens, over the last five seconds.", labels, rate);
  out += checks_text(gauges, labels, now);
  out += ranks_text(labels, gauges.ranks_each);
  out += links_text(labels, gauges.links);
  out += gauge_text("yoke_http_connections", "Open connections.", labels, static_cast<double>(gauges.connections));
  out += "# HELP yoke_http_responses_total Answers by status.\n# TYPE yoke_http_responses_total counter\n";
  for (const auto& [status, count] : responses_) {
    out += fmt::format("yoke_http_responses_total{{{},status=\"{}\"}} {}\n", labels, status, count);
  }
  return out;
}

}  // namespace yoke::serve
