#include "yoke/engine/engine_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "yoke/base/check.h"
#include "yoke/base/interrupt.h"

namespace yoke::engine {
using namespace literals;
namespace {

// How often a wait looks around for an interrupt that came between two system calls, and for an engine in this process
// that ended without a word.
constexpr int kTurnMs = 500;
// An engine in this process closes its line a moment before its thread says why.
constexpr Seconds kReasonLimit{2};

}  // namespace

EngineConnection::EngineConnection(Socket listener) : EngineConnection(std::move(listener), Ends::kListener) {}
EngineConnection::EngineConnection(Socket socket, Ends ends) : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_.get() < 0) throw system_error(errno, "cannot make an event descriptor");
  (ends == Ends::kListener ? listener_ : connection_) = std::move(socket);
}

void EngineConnection::submit(const Request& request) {
  std::string bytes = encode(request);
  const std::lock_guard lock(mutex_);
  if (unfinished_.contains(request.id)) {
    throw Error(ErrorCode::kConflict, fmt::format("a request with the number {} is there already", request.id));
  }
  if (bytes.size() > kMaxClientPayload) {
    made_here_.push_back(RequestEnded{
        .id = request.id,
        .reason = FinishReason::kLength,
        .error = Error(ErrorCode::kInvalid,
                       fmt::format("the prompt has {} tokens, more than a request may have", request.prompt.size()))});
    return wake();
  }
  unfinished_.emplace(request.id, Unfinished{.request = request});
  if (connection_) send(std::move(bytes));
}

void EngineConnection::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = unfinished_.find(id);
  if (found == unfinished_.end() || found->second.cancelled) return;
  found->second.cancelled = true;
  if (connection_) {
    send(encode(CancelRequest{id}));
  } else {  // nobody works on it
    unfinished_.erase(found);
    made_here_.push_back(RequestEnded{.id = id, .reason = FinishReason::kCancelled, .error = {}});
    wake();
  }
}

void EngineConnection::ask_account() {
  const std::lock_guard lock(mutex_);
  if (connection_) send(encode(AccountRequest{}));
}

void EngineConnection::end(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (!end_) end_ = reason;
  wake();
}

std::optional<EngineEvent> EngineConnection::next(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto event = take_event()) return event;
    throw_if_over();
    throw_if_interrupted();
    if (deadline.expired()) return std::nullopt;
    wait(deadline, lock);
  }
}

void EngineConnection::throw_if_over() {
  if (failure_) throw Error(*failure_);
  if (connection_) return;  // what it has sent is read first
  if (end_) throw Error(*end_);
  if (!listener_ && lost_at_ && to_seconds(real_clock().now() - *lost_at_) > kReasonLimit) {
    throw Error(ErrorCode::kInternal, "the engine ended without a word", "please report this");
  }
}

// ---- bytes

// Kept and sent as the engine takes it: an engine that is busy, or itself waits for us to read, is not waited for.
void EngineConnection::send(std::string bytes) {
  outgoing_ += bytes;
  push_out();
  if (sent_ < outgoing_.size()) wake();  // the one that waits must wait for the socket to take more
}

void EngineConnection::wake() const {
  const std::uint64_t one = 1;
  const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
  static_cast<void>(ignored);  // full: it is awake already
}

void EngineConnection::push_out() {
  while (sent_ < outgoing_.size()) {
    const ssize_t count =
        ::send(connection_.fd(), outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      // A line that is broken has an end to read, where the loss is noticed.
      if (errno != EAGAIN) sent_ = outgoing_.size();
      break;
    }
  }
  // Moved to the front rarely, so that a long queue costs no more than its bytes.
  if (sent_ == outgoing_.size() || sent_ > outgoing_.size() / 2) {
    outgoing_.erase(0, sent_);
    sent_ = 0;
  }
}

// Only the thread that is here closes or takes connections, so that the descriptor stays while the lock is open.
void EngineConnection::wait(Deadline deadline, std::unique_lock<std::mutex>& lock) {
  const Socket& socket = connection_ ? connection_ : listener_;
  pollfd waiting[] = {{socket.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};  // a descriptor of -1 is passed over
  if (connection_ && sent_ < outgoing_.size()) waiting[0].events |= POLLOUT;
  lock.unlock();
  const int ready = poll(waiting, 2, deadline.poll_timeout_ms(kTurnMs));
  lock.lock();
  if (ready <= 0) return;
  if (waiting[1].revents != 0) {
    std::uint64_t woken = 0;
    const ssize_t ignored = ::read(wake_.get(), &woken, sizeof woken);
    static_cast<void>(ignored);
  }
  if (waiting[0].revents == 0) return;
  if (!connection_) return take_connection();
  if ((waiting[0].revents & POLLOUT) != 0) push_out();
  if ((waiting[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) take_bytes();
}

void EngineConnection::take_connection() {
  try {
    connection_ = listener_.accept(Deadline::after(0_s));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) return;  // gone before it was taken
    throw;
  }
  resume();
}

void EngineConnection::take_bytes() {
  std::array<char, 64 << 10> buffer;
  const ssize_t count = recv(connection_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    reader_.feed({buffer.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    lose_connection();
  }
}

void EngineConnection::lose_connection() {
  connection_.close();
  reader_ = {};  // half a message is none
  outgoing_.clear();
  sent_ = 0;
  if (!lost_at_ && (was_ready_ || !listener_)) lost_at_ = real_clock().now();
}

// A new rank 0 knows of nothing. What was on when the last one was lost is suspected of it: the one that ran alone, or
// else all.
void EngineConnection::resume() {
  const auto alone = std::exchange(alone_, std::nullopt);
  for (auto at = unfinished_.begin(); at != unfinished_.end();) {
    auto& [id, one] = *at;
    if (was_ready_ && (!alone || *alone == id)) ++one.request.recoveries;
    // The word of its end may have been lost with the rank 0 that made all of it.
    const auto reason = one.cancelled ? FinishReason::kCancelled : finished(one.request);
    if (reason) {
      made_here_.push_back(RequestEnded{.id = id, .reason = *reason, .error = {}});
      at = unfinished_.erase(at);
    } else {
      send(encode(one.request));
      ++at;
    }
  }
}

// ---- events

std::optional<EngineEvent> EngineConnection::take_event() {
  while (true) {
    if (!made_here_.empty()) {
      EngineEvent event = std::move(made_here_.front());
      made_here_.pop_front();
      return event;
    }
    auto event = reader_.next_event();
    if (!event) return std::nullopt;
    if (auto reported = passed(*std::move(event))) return reported;
  }
}

// Keeps the books; nothing where the client need not know.
std::optional<EngineEvent> EngineConnection::passed(EngineEvent event) {
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
  if (auto* token = std::get_if<TokenEvent>(&event)) {
    const auto found = unfinished_.find(token->id);
    if (found == unfinished_.end()) return std::nullopt;
    found->second.request.answer.push_back(token->token.id);
    found->second.request.recoveries = 0;  // it got further
  } else if (const auto* read = std::get_if<PromptProgress>(&event)) {
    const auto found = unfinished_.find(read->id);
    if (found == unfinished_.end()) return std::nullopt;
    if (read->done > std::exchange(found->second.read_max, std::max(found->second.read_max, read->done))) {
      found->second.request.recoveries = 0;
    }
  } else if (auto* logits = std::get_if<LogitsEvent>(&event)) {
    if (!is_news(*logits)) return std::nullopt;
  } else if (auto* ended = std::get_if<RequestEnded>(&event)) {
    if (alone_ == ended->id) alone_.reset();
    if (unfinished_.erase(ended->id) == 0) return std::nullopt;
  } else if (const auto* alone = std::get_if<RequestAlone>(&event)) {
    alone_ = alone->id;
    return std::nullopt;
  }
  return event;
}

// The prompt of a request that was taken up again is computed again, and its logits come again.
bool EngineConnection::is_news(LogitsEvent& logits) {
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

}  // namespace yoke::engine
