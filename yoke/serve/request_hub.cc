#include "yoke/serve/request_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "yoke/base/log.h"

namespace yoke::serve {
using namespace literals;
namespace {

constexpr Seconds kHubTurn{0.05};  // between two looks at signals and limits
constexpr Seconds kWaitEvery{5};   // without a token, a sink is told so
constexpr Seconds kRetryMax{60};   // between two starts of an engine that fails
constexpr int kFailuresMax = 5;    // then requests are no longer kept waiting
constexpr std::size_t kNotices = 20;

Instant later(Instant from, Seconds time) {
  return from + std::chrono::duration_cast<Instant::duration>(std::chrono::duration<double>(time.value));
}

}  // namespace

RequestHub::RequestHub(EngineHostSpec spec, HubOptions options)
    : spec_(std::move(spec)),
      options_(std::move(options)),
      queue_(options_.running_max, options_.queue_max),
      next_start_(real_clock().now()) {
  spec_.engine.sequences_max = options_.running_max;
  spec_.on_notice = [this](const std::string& text) { note(text); };
  spec_.on_rank_lost = [this](std::optional<int> rank) { lose_rank(rank); };
  spec_.on_node_state = [this](const std::string& node, const job::NodeState& state) {
    node_states_.take(node, state, real_clock().now());
  };
}

// ---- the owner's thread

void RequestHub::run() {
  while (!wants_to_end()) {
    if (!host_) {
      if (real_clock().now() < next_start_) {
        real_clock().sleep(kHubTurn);
        sweep();
        continue;
      }
      start_engine();
      continue;
    }
    try {
      // All that has come is given out before anything else is looked at.
      auto event = host_->connection().next(Deadline::after(kHubTurn));
      while (event) {
        take(*event);
        event = host_->connection().next(Deadline::after({}));
      }
    } catch (const Error& error) {
      lose_engine(error);
    }
    sweep();
  }
  fail_all(Error(ErrorCode::kUnavailable, "the server is shutting down"));
  std::unique_ptr<EngineHost> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(host_);
  }
}

void RequestHub::start_engine() {
  metrics_.count_engine_start();
  try {
    auto host = std::make_unique<EngineHost>(spec_);
    std::map<std::uint64_t, engine::FinishReason> complete;  // the word of their end was lost with the engine
    {
      const std::lock_guard lock(mutex_);
      host_ = std::move(host);
      for (auto& [id, one] : pending_) {
        if (const auto reason = engine::finished(one.request)) {
          complete.emplace(id, *reason);
        } else if (one.is_given && !one.is_cancelled) {
          host_->connection().submit(one.request);
        }
      }
      fill_places();
    }
    for (const auto& [id, reason] : complete) finish(id, reason, std::nullopt);
  } catch (const Error& error) {
    lose_engine(error);
  }
}

// The engine has ended for good. Before it was ready the first time that is the answer to the command; later the
// server goes on without one, and starts another.
void RequestHub::lose_engine(const Error& reason) {
  std::unique_ptr<EngineHost> lost;
  {
    const std::lock_guard lock(mutex_);
    lost = std::move(host_);
    if (state_ == EngineState::kReady) failures_ = 0;
    ++failures_;
    state_ = failures_ >= kFailuresMax ? EngineState::kFailed : EngineState::kRestarting;
    why_ = reason.message();
    for (auto& [id, one] : pending_) {
      if (one.is_running) ++one.request.recoveries;
      one.is_running = false;
    }
  }
  lost.reset();
  if (!ready_) throw Error(reason);
  const Seconds pause{std::min(kRetryMax.value, 0.5 * static_cast<double>(1 << std::min(failures_, 7)))};
  next_start_ = later(real_clock().now(), pause);
  note(fmt::format("the engine has ended: {}; starting it again in {} (try {})", reason.message(), to_string(pause),
                   failures_));
  if (failures_ >= kFailuresMax) {
    fail_all(Error(ErrorCode::kUnavailable, fmt::format("the engine does not start: {}", reason.message())));
  }
}

void RequestHub::fail_all(const Error& error) {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, one] : pending_) ids.push_back(id);
  }
  for (const std::uint64_t id : ids) finish(id, engine::FinishReason::kCancelled, error);
}

// A first signal lets answers end; a second one, or the limit, ends them.
bool RequestHub::wants_to_end() {
  const auto signal_number = held_.take();
  bool is_first = false;
  bool is_empty = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = signal_number && !is_draining_;
    is_draining_ = is_draining_ || signal_number.has_value();
    is_empty = pending_.empty();
  }
  if (is_first) {
    drain_end_ = later(real_clock().now(), options_.drain_limit);
    if (options_.on_drain) options_.on_drain();
    if (host_ && !ready_) host_->end_for(*signal_number);
    return is_empty;
  }
  if (!is_draining_) return false;
  const bool is_over = signal_number || is_empty || !ready_ || real_clock().now() > drain_end_;
  if (is_over && signal_number && host_) host_->end_for(*signal_number);
  return is_over;
}

void RequestHub::sweep() {
  const Instant now = real_clock().now();
  if (now < later(swept_, kHubTurn)) return;
  swept_ = now;
  std::vector<std::shared_ptr<AnswerSink>> waiting;
  std::vector<std::uint64_t> late, left;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, one] : pending_) {
      if (one.is_cancelled) left.push_back(id);
      if (now > one.ends_at && !std::exchange(one.is_timed_out, true)) late.push_back(id);
      if (now > later(std::max(one.last_event, one.last_wait), kWaitEvery)) {
        one.last_wait = now;
        waiting.push_back(one.sink);
      }
    }
  }
  for (const auto& sink : waiting) sink->on_wait();
  for (const std::uint64_t id : left) finish(id, engine::FinishReason::kCancelled, std::nullopt);
  for (const std::uint64_t id : late) {
    cancel(id);
    finish(id, engine::FinishReason::kCancelled, Error(ErrorCode::kTimeout, "the answer took too long"));
  }
}

// ---- events

void RequestHub::take(const engine::EngineEvent& event) {
  if (const auto* token = std::get_if<engine::TokenEvent>(&event)) return take_token(*token);
  if (const auto* ended = std::get_if<engine::RequestEnded>(&event)) return take_end(*ended);
  if (const auto* states = std::get_if<engine::LogitsEvent>(&event)) return take_states(*states);
  if (const auto* read = std::get_if<engine::PromptProgress>(&event)) {
    take_progress(*read);
  } else if (const auto* step = std::get_if<engine::StepDone>(&event)) {
    metrics_.count_step(step->tokens, step->preemptions);
  } else if (const auto* load = std::get_if<engine::LoadProgress>(&event)) {
    const std::lock_guard lock(mutex_);
    loaded_ =
        load->total.value > 0 ? static_cast<double>(load->done.value) / static_cast<double>(load->total.value) : 0;
  } else if (const auto* ready = std::get_if<engine::EngineReady>(&event)) {
    {
      const std::lock_guard lock(mutex_);
      ready_ = *ready;
      state_ = EngineState::kReady;
      lost_ranks_.clear();
      why_.clear();
    }
    if (options_.on_ready) options_.on_ready();
  } else if (const auto* recovered = std::get_if<engine::EngineRecovered>(&event)) {
    {
      const std::lock_guard lock(mutex_);
      lost_ranks_.clear();
    }
    metrics_.count_recovery(recovered->after);
    note(fmt::format("going on after {}: {}", to_string(recovered->after), recovered->cause));
  }
}

void RequestHub::take_progress(const engine::PromptProgress& event) {
  std::shared_ptr<AnswerSink> sink;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(event.id);
    if (found == pending_.end()) return;
    Pending& one = found->second;
    one.is_running = true;
    if (event.cached == 0) return;
    one.cached = event.cached;
    sink = one.sink;
  }
  sink->on_cached(event.id, event.cached);
}

void RequestHub::take_token(const engine::TokenEvent& event) {
  const Instant now = real_clock().now();
  std::shared_ptr<AnswerSink> sink;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(event.id);
    if (found == pending_.end()) return;
    Pending& one = found->second;
    one.request.answer.push_back(event.token.id);
    one.request.recoveries = 0;
    one.is_running = true;
    const bool is_first = !one.first_token;
    metrics_.count_token(to_seconds(now - (is_first ? one.submitted : one.last_event)), is_first, now);
    if (is_first) one.first_token = now;
    one.last_event = now;
    sink = one.sink;
  }
  sink->on_token(event.id, event.token);
}

void RequestHub::take_states(const engine::LogitsEvent& event) {
  std::shared_ptr<AnswerSink> sink;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(event.id);
    if (found == pending_.end()) return;
    found->second.is_running = true;
    sink = found->second.sink;
  }
  sink->on_states(event);
}

void RequestHub::take_end(const engine::RequestEnded& event) { finish(event.id, event.reason, event.error); }

void RequestHub::finish(std::uint64_t id, engine::FinishReason reason, const std::optional<Error>& error) {
  Pending ended;
  {
    const std::lock_guard lock(mutex_);
    auto found = pending_.find(id);
    if (found == pending_.end()) return;
    ended = std::move(found->second);
    pending_.erase(found);
    queue_.remove(id);
    fill_places();
  }
  const bool is_cancelled = reason == engine::FinishReason::kCancelled;
  const bool is_length = reason == engine::FinishReason::kLength;
  metrics_.count_finished(
      {.reason = error          ? "error"
                 : is_cancelled ? "abort"
                 : is_length    ? "length"
                                : "stop",
       .prompt_tokens = std::ssize(ended.request.prompt),
       .cached_tokens = ended.cached,
       .answer_tokens = std::ssize(ended.request.answer),
       .total = to_seconds(real_clock().now() - ended.submitted),
       .queued = ended.placed ? to_seconds(*ended.placed - ended.submitted) : Seconds{},
       .first_token = ended.first_token ? to_seconds(*ended.first_token - ended.submitted) : Seconds{}});
  ended.sink->on_end(id, reason, error);
}

// A cause without a rank, such as a cut cable, makes a new group and starts none of them again.
void RequestHub::lose_rank(std::optional<int> rank) {
  const std::lock_guard lock(mutex_);
  if (!rank) return;
  lost_ranks_.insert(*rank);
  ++restarts_[*rank];
}

void RequestHub::note(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    notices_.push_back(fmt::format("{} {}", utc_now(), text));
    if (notices_.size() > kNotices) notices_.pop_front();
  }
  if (options_.on_notice) options_.on_notice(text);
}

// ---- any thread

void RequestHub::check_room(std::size_t count, const std::string& client) const {
  const std::lock_guard lock(mutex_);
  if (is_draining_) throw Error(ErrorCode::kUnavailable, "the server is shutting down");
  if (state_ == EngineState::kFailed) {
    throw Error(ErrorCode::kUnavailable, fmt::format("the engine does not start: {}", why_));
  }
  if (!ready_) {
    throw Error(ErrorCode::kUnavailable, fmt::format("the model is still loading ({:.0f}%)", loaded_ * 100));
  }
  const std::size_t max = static_cast<std::size_t>(options_.running_max + options_.queue_max);
  if (!queue_.has_room(client, count)) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("{} requests are running or waiting, and {} is the limit (the last eighth of the queue is "
                            "kept for clients with few requests)",
                            pending_.size(), max));
  }
}

void RequestHub::submit(engine::Request request, std::shared_ptr<AnswerSink> sink, Seconds limit,
                        const std::string& client) {
  const Instant now = real_clock().now();
  const std::lock_guard lock(mutex_);
  Pending one{.request = std::move(request),
              .sink = std::move(sink),
              .submitted = now,
              .last_event = now,
              .last_wait = now,
              .ends_at = later(now, limit)};
  const std::uint64_t id = one.request.id;
  pending_.emplace(id, std::move(one));
  queue_.add(client, id);
  fill_places();
}

// The engine has as many requests as it runs, and no more: what waits in it can no longer be overtaken.
void RequestHub::fill_places() {
  while (host_) {
    const auto id = queue_.next();
    if (!id) return;
    Pending& one = pending_.at(*id);
    one.is_given = true;
    if (!one.placed) one.placed = real_clock().now();
    host_->connection().submit(one.request);
  }
}

// The end comes from the engine, or, where it does not have the request, from the next sweep: the sink may be in the
// middle of a call of ours.
void RequestHub::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (!pending_.contains(id)) return;
  Pending& one = pending_.at(id);
  if (host_ && one.is_given) {
    host_->connection().cancel(id);
  } else {
    one.is_cancelled = true;
    if (!one.is_given) queue_.remove(id);
  }
}

HubStatus RequestHub::status() const {
  const std::lock_guard lock(mutex_);
  HubStatus status{.state = state_, .why = why_, .ready = ready_, .loaded = loaded_, .is_draining = is_draining_};
  for (const auto& [id, one] : pending_) {
    ++(one.is_running ? status.running : status.waiting);
    if (one.is_running) status.tokens_held += std::ssize(one.request.prompt) + std::ssize(one.request.answer);
  }
  status.notices.assign(notices_.begin(), notices_.end());
  for (int rank = 0; ready_ && rank < ready_->ranks; ++rank) {
    const auto restarts = restarts_.find(rank);
    status.ranks.push_back({.is_up = state_ == EngineState::kReady && !lost_ranks_.contains(rank),
                            .restarts = restarts == restarts_.end() ? 0 : restarts->second});
  }
  return status;
}

}  // namespace yoke::serve
