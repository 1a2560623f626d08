#include "yoke/serve/client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <variant>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke::serve {
namespace {

constexpr Seconds kTurn{0.05};  // between two looks at interrupts and notices

}  // namespace

double CompletedAnswer::prefill_rate(std::size_t prompt_tokens) const {
  return prefill.value > 0 ? static_cast<double>(prompt_tokens) / prefill.value : 0;
}
double CompletedAnswer::decode_rate() const {
  return decode.value > 0 ? static_cast<double>(tokens.size() - 1) / decode.value : 0;
}

std::string describe(const engine::EngineReady& ready) {
  std::vector<std::string> nodes = ready.nodes;
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return fmt::format("{} {} on {}; {}", ready.ranks, ready.ranks == 1 ? "rank" : "ranks", fmt::join(nodes, ", "),
                     ready.transport);
}

EngineClient::EngineClient(EngineHostSpec spec, ClientHooks hooks) : hooks_(std::move(hooks)) {
  spec.on_notice = [this](const std::string& text) {
    const std::lock_guard lock(notices_mutex_);
    notices_.push_back(text);
  };
  const Instant start = real_clock().now();
  host_.emplace(std::move(spec));
  wait_until_ready();
  load_time_ = to_seconds(real_clock().now() - start);
}

void EngineClient::wait_until_ready() {
  while (!ready_) {
    if (const auto signal_number = host_->take_interrupt()) end_for(*signal_number);
    report_notices();
    auto event = host_->connection().next(Deadline::after(kTurn));
    if (!event) continue;
    if (const auto* load = std::get_if<engine::LoadProgress>(&*event)) {
      if (hooks_.on_load) hooks_.on_load(*load);
    } else if (auto* ready = std::get_if<engine::EngineReady>(&*event)) {
      ready_ = std::move(*ready);
    } else if (const auto* recovered = std::get_if<engine::EngineRecovered>(&*event)) {
      take_recovery(*recovered);
    }
  }
}

// One request, from its start to its end.
class EngineClient::Asking {
 public:
  Asking(EngineClient& client, std::uint64_t id, const AskHooks& hooks) : client_(client), id_(id), hooks_(hooks) {}

  void take_interrupt() {
    const auto signal_number = client_.host_->take_interrupt();
    if (!signal_number) return;
    if (hooks_.interrupt == InterruptMeans::kTheEnd || *signal_number != SIGINT) client_.end_for(*signal_number);
    answer_.interrupted = true;
    stop();
  }

  void report_reading() const {
    if (hooks_.on_reading && answer_.tokens.empty()) hooks_.on_reading(tokens_read_);
  }

  // The end of the answer, when it has come.
  std::optional<Result<CompletedAnswer>> take(const engine::EngineEvent& event) {
    if (const auto* read = std::get_if<engine::PromptProgress>(&event)) {
      tokens_read_ = read->done;
    } else if (const auto* token = std::get_if<engine::TokenEvent>(&event)) {
      take_token(token->token);
    } else if (const auto* logits = std::get_if<engine::LogitsEvent>(&event)) {
      if (answer_.tokens.empty()) answer_.prefill = since_start();
      if (hooks_.on_logits) hooks_.on_logits(*logits);
    } else if (const auto* recovered = std::get_if<engine::EngineRecovered>(&event)) {
      client_.take_recovery(*recovered);
    } else if (const auto* ended = std::get_if<engine::RequestEnded>(&event)) {
      if (ended->error) return Unexpected(*ended->error);
      answer_.finish = enough_ && !answer_.interrupted ? engine::FinishReason::kStop : ended->reason;
      return answer_;
    }
    return std::nullopt;
  }

 private:
  Seconds since_start() const { return to_seconds(real_clock().now() - start_); }

  void take_token(const text::SampledToken& token) {
    if (enough_) return;
    if (answer_.tokens.empty()) answer_.prefill = since_start();
    answer_.tokens.push_back(token);
    answer_.decode = since_start() - answer_.prefill;
    if (hooks_.on_token && !hooks_.on_token(token)) stop();
  }

  void stop() {
    enough_ = true;
    client_.host_->connection().cancel(id_);
  }

  EngineClient& client_;
  const std::uint64_t id_;
  const AskHooks& hooks_;
  const Instant start_ = real_clock().now();
  CompletedAnswer answer_;
  std::int64_t tokens_read_ = 0;
  bool enough_ = false;
};

CompletedAnswer EngineClient::ask(engine::Request request, const AskHooks& hooks) {
  return value_or_throw(try_ask(std::move(request), hooks));
}

Result<CompletedAnswer> EngineClient::try_ask(engine::Request request, const AskHooks& hooks) {
  request.id = ++last_id_;
  Asking asking(*this, request.id, hooks);
  host_->connection().submit(request);
  while (true) {
    asking.take_interrupt();
    report_notices();
    const auto event = host_->connection().next(Deadline::after(kTurn));
    if (event) {
      if (auto ended = asking.take(*event)) return *std::move(ended);
    }
    asking.report_reading();
  }
}

std::optional<engine::EngineAccount> EngineClient::account(Seconds limit) {
  host_->connection().ask_account();
  const Deadline deadline = Deadline::after(limit);
  while (!deadline.expired()) {
    if (const auto signal_number = host_->take_interrupt()) end_for(*signal_number);
    report_notices();
    auto event = host_->connection().next(Deadline::after(kTurn));
    if (!event) continue;
    if (auto* account = std::get_if<engine::EngineAccount>(&*event)) return std::move(*account);
    if (const auto* recovered = std::get_if<engine::EngineRecovered>(&*event)) take_recovery(*recovered);
  }
  return std::nullopt;
}

void EngineClient::idle(Seconds time) {
  report_notices();
  const auto event = host_->connection().next(Deadline::after(time));
  if (!event) return;
  if (const auto* recovered = std::get_if<engine::EngineRecovered>(&*event)) take_recovery(*recovered);
}

void EngineClient::end_for(int signal_number) {
  host_->end_for(signal_number);
  host_.reset();
  if (hooks_.on_stopped) hooks_.on_stopped();
  if (interrupt_signal() == 0) job::DeferredSignals::redeliver(signal_number);
  throw_if_interrupted();
  throw Error(ErrorCode::kInterrupted, "stopped by a signal");
}

void EngineClient::take_recovery(const engine::EngineRecovered& recovered) {
  recoveries_.push_back(recovered);
  if (!hooks_.on_notice) return;
  hooks_.on_notice(fmt::format("going on after {}: {}", to_string(recovered.after), recovered.cause));
}

void EngineClient::report_notices() {
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(notices_mutex_);
    notices.swap(notices_);
  }
  if (!hooks_.on_notice) return;
  for (const std::string& text : notices) hooks_.on_notice(text);
}

}  // namespace yoke::serve
