#include "yoke/fleet/connection.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/log.h"
#include "yoke/base/text.h"

namespace yoke::fleet {
namespace {

using namespace literals;

constexpr Seconds kFrameSendLimit{10};
// While a question is under way its agent sends a heartbeat every second.
constexpr Seconds kAgentSilence{20};
constexpr Seconds kEndLimit{5};
constexpr std::size_t kMaxRead = 1 << 18;
constexpr std::size_t kMaxComplaint = 4096;
constexpr std::size_t kFrameShown = 400;  // characters of a frame that -vv shows

std::string_view kind_name(agent::FrameKind kind) {
  switch (kind) {
    case agent::FrameKind::kHello:
      return "hello";
    case agent::FrameKind::kQuestion:
      return "question";
    case agent::FrameKind::kAnswer:
      return "answer";
    case agent::FrameKind::kError:
      return "error";
    case agent::FrameKind::kProgress:
      return "progress";
    case agent::FrameKind::kHeartbeat:
      return "heartbeat";
    case agent::FrameKind::kBytes:
      return "bytes";
    case agent::FrameKind::kStop:
      return "stop";
  }
  return "?";
}

}  // namespace

Connection::Connection(std::unique_ptr<remote::RemoteProcess> process, std::string node)
    : process_(std::move(process)), node_(std::move(node)), heard_(real_clock().now()) {}

Connection::~Connection() {
  begin_end();
  const auto ignored = try_to([&] { process_->wait(Deadline::after(kEndLimit)); });
}

void Connection::begin_end() noexcept {
  bool unanswered = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || std::exchange(ending_, true)) return;
    unanswered = !asked_.empty() || !hello_;
  }
  const auto ignored = try_to([&] {
    if (unanswered) send({agent::FrameKind::kStop, 0, {}}, Deadline::after(1_s));
  });
  process_->close_input();
}

void Connection::await_hello(Deadline deadline) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (hello_) return;
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("yoke's agent on {} did not start in time", node_),
                  "is the machine overloaded?");
    }
    next(0, Deadline::after(std::min(deadline.remaining(), Seconds{0.2})));
  }
}

Seconds Connection::clock_ahead() const {
  const std::lock_guard lock(mutex_);
  return Seconds{ahead_.value_or(0)};
}

std::uint32_t Connection::ask(std::string_view action, const Document& question) {
  std::uint32_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_id_;
    open_[id];
    asked_.insert(id);
  }
  log(LogLevel::kDebug, "{}: question {}: {}", node_, id, action);
  send(agent::question_frame(id, action, question), Deadline::after(kFrameSendLimit));
  return id;
}

Document Connection::answer(std::uint32_t id, Deadline deadline,
                            const std::function<void(std::string_view)>& on_progress) {
  const Instant begun = real_clock().now();
  for (;;) {
    const auto frame = next(id, Deadline::after(std::min(deadline.remaining(), 1_s)));
    if (frame && frame->kind == agent::FrameKind::kProgress) {
      if (on_progress) on_progress(frame->payload);
    } else if (frame && (frame->kind == agent::FrameKind::kAnswer || frame->kind == agent::FrameKind::kError)) {
      forget(id);
      log(LogLevel::kDebug, "{}: answer {} after {} ({} bytes)", node_, id,
          to_string(to_seconds(real_clock().now() - begun)), frame->payload.size());
      return agent::read_answer(*frame, fmt::format("the answer of {}", node_));
    }
    if (frame) continue;
    Instant heard;
    {
      const std::lock_guard lock(mutex_);
      heard = std::max(heard_, begun);
    }
    if (to_seconds(real_clock().now() - heard) > kAgentSilence) {
      throw Error(ErrorCode::kUnavailable, fmt::format("{} has fallen silent", node_),
                  "is it still on, its cable plugged in, and its memory not exhausted?");
    }
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, fmt::format("no answer from yoke's agent on {}", node_));
  }
}

void Connection::forget(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  open_.erase(id);
  asked_.erase(id);
}

std::optional<agent::AgentFrame> Connection::next(std::uint32_t id, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto queue = open_.find(id); queue != open_.end() && !queue->second.empty()) {
      agent::AgentFrame frame = std::move(queue->second.front());
      queue->second.pop_front();
      return frame;
    }
    if (ended_) throw Error(*ended_);
    if (id == 0 && hello_) return std::nullopt;
    if (deadline.expired()) return std::nullopt;
    if (moving_ || senders_ > 0) {
      changed_.wait_for(lock, to_chrono(std::min(deadline.remaining(), 20_ms)));
      continue;
    }
    moving_ = true;
    // Where others may want to send, turns are short.
    const Seconds turn = std::min(deadline.remaining(), open_.size() > 1 ? 20_ms : 200_ms);
    lock.unlock();
    const auto moved = try_to([&] { return move(turn); });
    lock.lock();
    moving_ = false;
    changed_.notify_all();
    if (!moved && moved.error().code() == ErrorCode::kInterrupted) throw Error(moved.error());
    if (moved) {
      const auto taken = try_to([&] { take(*moved); });
      if (!taken) ended_ = taken.error();
    } else {
      ended_ = moved.error();
    }
  }
}

// What has come, waiting for it so long. Without the lock: process_ is ours by `moving_`.
Connection::Moved Connection::move(Seconds time) {
  Moved moved;
  moved.bytes = process_->read_bytes(OutputStream::kOut, kMaxRead, Deadline::after(time));
  moved.complaint = process_->read_bytes(OutputStream::kErr, kMaxComplaint, Deadline::after(0_s));
  if (!moved.bytes.empty() || !process_->at_end(OutputStream::kOut)) return moved;
  moved.at_end = true;
  // It says by its end why, or ssh does.
  const std::optional<Outcome> outcome = process_->wait(Deadline::after(2_s));
  if (outcome) moved.complaint += outcome->err;
  return moved;
}

void Connection::take(const Moved& moved) {
  complaint_ += moved.complaint;
  if (complaint_.size() > kMaxComplaint) complaint_.erase(0, complaint_.size() - kMaxComplaint);
  if (!moved.bytes.empty()) heard_ = real_clock().now();
  reader_.feed(moved.bytes);
  try {
    while (auto frame = reader_.next()) take(*std::move(frame));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the channel to {} carries nonsense: {}", node_, error.message()),
                "does a startup file of the login shell there print something, or is another program in its place?");
  }
  if (moved.at_end) ended_ = end_error();
}

void Connection::take(agent::AgentFrame frame) {
  log(LogLevel::kTrace, "{} sends {} {}: {}", node_, kind_name(frame.kind), frame.id,
      printable(frame.payload, kFrameShown));
  if (frame.kind == agent::FrameKind::kHello || frame.kind == agent::FrameKind::kHeartbeat) {
    hello_ = true;
    return hear_time(frame);
  }
  if (frame.kind == agent::FrameKind::kError && frame.id == 0) agent::read_answer(frame, node_);  // throws it
  if (const auto queue = open_.find(frame.id); queue != open_.end()) queue->second.push_back(std::move(frame));
}

void Connection::hear_time(const agent::AgentFrame& frame) {
  const double ahead = agent::read_time(frame) - agent::agent_clock_now();
  ahead_ = std::max(ahead_.value_or(ahead), ahead);
}

Error Connection::end_error() {
  const std::string_view words = trim(complaint_);
  return Error(ErrorCode::kUnavailable,
               fmt::format("yoke's agent on {} ended{}{}", node_, words.empty() ? "" : ": ", printable(words)),
               "was it killed, or its memory exhausted?");
}

void Connection::send(const agent::AgentFrame& frame, Deadline deadline) {
  const std::string bytes = agent::encode(frame);
  log(LogLevel::kTrace, "{} hears {} {}: {}", node_, kind_name(frame.kind), frame.id,
      printable(frame.payload, kFrameShown));
  std::unique_lock lock(mutex_);
  if (ended_) throw Error(*ended_);
  ++senders_;
  changed_.wait(lock, [&] { return !moving_; });
  moving_ = true;
  --senders_;
  lock.unlock();
  const auto written = try_to([&] { process_->write(bytes, deadline); });
  lock.lock();
  moving_ = false;
  changed_.notify_all();
  // An agent that closed its input has ended: the one that waits for it learns why.
  if (!written && written.error().code() != ErrorCode::kUnavailable) throw Error(written.error());
}

}  // namespace yoke::fleet
