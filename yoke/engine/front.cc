#include "yoke/engine/front.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "yoke/base/check.h"
#include "yoke/base/interrupt.h"

namespace yoke {
using namespace literals;
namespace {

// How often a wait looks whether end() or an interrupt came, which both come from elsewhere than the socket.
constexpr int kTurnMs = 50;
// An engine in this process closes its line a moment before its thread says why.
constexpr Seconds kReasonLimit{2};

}  // namespace

Front::Front(Socket listener) : Front(std::move(listener), Ends::kListener) {}
Front::Front(Socket socket, Ends ends) { (ends == Ends::kListener ? listener_ : connection_) = std::move(socket); }

void Front::submit(const Request& request) {
  const bool is_new = unfinished_.emplace(request.id, Unfinished{.request = request}).second;
  YOKE_CHECK(is_new, "request {} is not finished", request.id);
  if (connection_) send(request);
}

void Front::cancel(std::uint64_t id) {
  const auto found = unfinished_.find(id);
  if (found == unfinished_.end() || found->second.cancelled) return;
  found->second.cancelled = true;
  if (connection_) {
    send(CancelRequest{id});
  } else {  // nobody works on it
    unfinished_.erase(found);
    made_here_.push_back(RequestEnded{.id = id, .reason = FinishReason::kCancelled, .error = {}});
  }
}

void Front::end(const Error& reason) {
  const std::lock_guard lock(end_mutex_);
  if (!end_) end_ = reason;
}

std::optional<EngineEvent> Front::next(Deadline deadline) {
  while (true) {
    if (auto event = take_event()) return event;
    throw_if_over();
    throw_if_interrupted();
    if (deadline.expired()) return std::nullopt;
    wait(deadline);
  }
}

void Front::throw_if_over() {
  if (failure_) throw Error(*failure_);
  if (connection_) return;  // what it has sent is read first
  {
    const std::lock_guard lock(end_mutex_);
    if (end_) throw Error(*end_);
  }
  if (!listener_ && lost_at_ && to_seconds(real_clock().now() - *lost_at_) > kReasonLimit) {
    throw Error(ErrorCode::kInternal, "the engine ended without a word", "please report this");
  }
}

// ---- bytes

// Kept and sent as the engine takes it: an engine that is busy, or itself waits for us to read, is not waited for.
void Front::send(const FrontMessage& message) {
  outgoing_ += encode(message);
  push_out();
}

void Front::push_out() {
  while (!outgoing_.empty()) {
    const ssize_t count = ::send(connection_.fd(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      outgoing_.erase(0, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      // A line that is broken has an end to read, where the loss is noticed.
      if (errno != EAGAIN) outgoing_.clear();
      return;
    }
  }
}

void Front::wait(Deadline deadline) {
  const Socket& socket = connection_ ? connection_ : listener_;
  pollfd waiting{socket.fd(), POLLIN, 0};  // a descriptor of -1 is only a pause
  if (connection_ && !outgoing_.empty()) waiting.events |= POLLOUT;
  if (poll(&waiting, 1, deadline.poll_timeout_ms(kTurnMs)) <= 0) return;
  if (!connection_) return take_connection();
  if ((waiting.revents & POLLOUT) != 0) push_out();
  if ((waiting.revents & (POLLIN | POLLHUP | POLLERR)) != 0) take_bytes();
}

void Front::take_connection() {
  try {
    connection_ = listener_.accept(Deadline::after(0_s));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) return;  // gone before it was taken
    throw;
  }
  resume();
}

void Front::take_bytes() {
  std::array<char, 64 << 10> buffer;
  const ssize_t count = recv(connection_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    reader_.feed({buffer.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    lose_connection();
  }
}

void Front::lose_connection() {
  connection_.close();
  reader_ = {};  // half a message is none
  outgoing_.clear();
  if (!lost_at_ && (was_ready_ || !listener_)) lost_at_ = real_clock().now();
}

// A new rank 0 knows of nothing.
void Front::resume() {
  for (auto at = unfinished_.begin(); at != unfinished_.end();) {
    const auto& [id, one] = *at;
    // The word of its end may have been lost with the rank 0 that made all of it.
    const auto reason = one.cancelled ? FinishReason::kCancelled : finished(one.request);
    if (reason) {
      made_here_.push_back(RequestEnded{.id = id, .reason = *reason, .error = {}});
      at = unfinished_.erase(at);
    } else {
      send(one.request);
      ++at;
    }
  }
}

// ---- events

std::optional<EngineEvent> Front::take_event() {
  while (true) {
    if (!made_here_.empty()) {
      EngineEvent event = std::move(made_here_.front());
      made_here_.pop_front();
      return event;
    }
    auto event = reader_.next_event();
    if (!event) return std::nullopt;
    if (auto told = passed(*std::move(event))) return told;
  }
}

// Keeps the books; nothing where the asker need not know.
std::optional<EngineEvent> Front::passed(EngineEvent event) {
  if (const auto* failed = std::get_if<EngineFailed>(&event)) {
    failure_ = failed->error;
    throw Error(*failure_);
  }
  if (std::holds_alternative<LoadProgress>(event) && was_ready_) return std::nullopt;
  if (std::holds_alternative<EngineReady>(event)) {
    if (!std::exchange(was_ready_, true)) return event;
    const Instant lost = std::exchange(lost_at_, std::nullopt).value_or(real_clock().now());
    return EngineRecovered{.after = to_seconds(real_clock().now() - lost), .cause = "rank 0 was lost"};
  }
  if (auto* token = std::get_if<TokenMade>(&event)) {
    const auto found = unfinished_.find(token->id);
    if (found == unfinished_.end()) return std::nullopt;
    found->second.request.answer.push_back(token->token.id);
  } else if (const auto* read = std::get_if<PromptRead>(&event)) {
    if (!unfinished_.contains(read->id)) return std::nullopt;
  } else if (auto* logits = std::get_if<LogitsMade>(&event)) {
    if (!is_news(*logits)) return std::nullopt;
  } else if (auto* ended = std::get_if<RequestEnded>(&event)) {
    if (unfinished_.erase(ended->id) == 0) return std::nullopt;
  }
  return event;
}

// The prompt of a request that was taken up again is computed again, and its logits come again.
bool Front::is_news(LogitsMade& logits) {
  const auto found = unfinished_.find(logits.id);
  if (found == unfinished_.end()) return false;
  std::int64_t& next = found->second.logits_next;
  const std::int64_t end = logits.position + logits.rows.extent(0);
  if (end <= next) return false;
  if (logits.position < next) {
    logits.rows = logits.rows.slice(0, {next - logits.position, logits.rows.extent(0)});
    logits.position = next;
  }
  next = end;
  return true;
}

}  // namespace yoke
