#include "yoke/job/node_channel.h"

#include <fmt/format.h>

#include "yoke/base/text.h"
#include "yoke/job/node_answer.h"
#include "yoke/job/supervisor.h"

namespace yoke::job {
using namespace literals;
namespace {

constexpr Seconds kReadTurn{0.02};
// Eight heartbeats: a loaded machine misses a few.
constexpr Seconds kSilence{1.6};
constexpr Seconds kNodeSendLimit{2};
// Beyond what ssh itself allows for a login.
constexpr Seconds kHelloLimit{40};
constexpr std::size_t kMaxErrors = 4096;

}  // namespace

namespace {

// A node that sends faster than the head takes in fills no memory: its thread waits, and so does the node then. Not for
// ever, as the head may wait for that thread.
constexpr std::size_t kInboxBytes = 64 << 20;
constexpr Seconds kInboxWait{5};

std::size_t cost_of(const ChannelEvent& event) { return sizeof event + event.message.payload.size(); }

}  // namespace

void Inbox::push(ChannelEvent event) {
  std::unique_lock lock(mutex_);
  emptied_.wait_for(lock, to_chrono(kInboxWait), [&] { return bytes_ < kInboxBytes; });
  bytes_ += cost_of(event);
  events_.push_back(std::move(event));
  filled_.notify_one();
}

void Inbox::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  filled_.notify_one();
}

std::optional<ChannelEvent> Inbox::pop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  filled_.wait_for(lock, to_chrono(deadline.remaining()), [&] { return !events_.empty() || woken_; });
  woken_ = false;
  if (events_.empty()) return std::nullopt;
  ChannelEvent event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= cost_of(event);
  emptied_.notify_one();
  return event;
}

NodeChannel::NodeChannel(ChannelOptions options, Inbox& inbox) : options_(std::move(options)), inbox_(inbox) {
  thread_ = std::thread([this] { live(); });
}

NodeChannel::~NodeChannel() {
  finish();
  thread_.join();
}

void NodeChannel::send(const Message& message) {
  const std::lock_guard lock(mutex_);
  to_send_ += encode(message);
}

void NodeChannel::finish() { finishing_ = true; }

void NodeChannel::put(ChannelEvent::Kind kind, Error error) {
  inbox_.push({.node = options_.index, .kind = kind, .error = std::move(error)});
}

// Entry of the thread: nothing leaves it.
void NodeChannel::live() {
  try {
    open();
    move_messages();
    close();
  } catch (const Error& error) {
    put(ChannelEvent::Kind::kFailed, error);
    if (process_) process_->kill();
  } catch (const std::exception& failure) {
    put(ChannelEvent::Kind::kFailed, Error(ErrorCode::kInternal, failure.what()));
  }
  process_.reset();
  inbox_.push({.node = options_.index, .kind = ChannelEvent::Kind::kFinished});
}

void NodeChannel::open() {
  options_.node->reach();
  process_ = options_.node->open("supervise", supervision_question(options_.tag));
  last_heard_ = real_clock().now();
}

void NodeChannel::move_messages() {
  while (!finishing_) {
    move_out();
    if (!take_in()) return explain_end();
    const Seconds silent = to_seconds(real_clock().now() - last_heard_);
    if (heard_ && silent > kSilence) return explain_end();
    if (!heard_ && silent > kHelloLimit) {
      throw Error(ErrorCode::kTimeout, fmt::format("the supervisor on {} did not start", options_.node->name()),
                  "is the machine overloaded?");
    }
  }
}

void NodeChannel::move_out() {
  std::string data;
  {
    const std::lock_guard lock(mutex_);
    data.swap(to_send_);
  }
  const Instant now = real_clock().now();
  if (heard_ && to_seconds(now - last_heartbeat_).value >= kHeartbeatSeconds) {
    data += encode({MessageType::kHeartbeat});
    last_heartbeat_ = now;
  }
  if (data.empty()) return;
  // A supervisor that no longer reads is gone, or stands still: its silence, or the end of its output, tells.
  const auto ignored = try_to([&] { process_->write(data, Deadline::after(kNodeSendLimit)); });
  if (!ignored && ignored.error().code() == ErrorCode::kInterrupted) throw Error(ignored.error());
}

// False at the end of what it writes.
bool NodeChannel::take_in() {
  const std::string data = process_->read_bytes(OutputStream::kOut, 1 << 17, Deadline::after(kReadTurn));
  errors_ += process_->read_bytes(OutputStream::kErr, kMaxErrors, Deadline::after(0_s));
  if (errors_.size() > kMaxErrors) errors_.erase(0, errors_.size() - kMaxErrors);
  if (data.empty()) return !process_->at_end(OutputStream::kOut);
  heard_ = true;
  last_heard_ = real_clock().now();
  reader_.feed(data);
  try {
    while (auto message = reader_.next()) {
      gone_ |= message->type == MessageType::kGone;
      const bool beat = message->type == MessageType::kHeartbeat;
      inbox_.push({.node = options_.index,
                   .kind = beat ? ChannelEvent::Kind::kHeard : ChannelEvent::Kind::kMessage,
                   .message = *std::move(message)});
    }
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("the channel to {} carries nonsense: {}", options_.node->name(), error.message()),
                "does a startup file of the login shell there print something, or is another program in its place?");
  }
  return true;
}

// The channel has closed or is silent, and nobody asked it to.
void NodeChannel::explain_end() {
  if (gone_) return;
  if (const auto ended = ended_allocation()) return put(ChannelEvent::Kind::kChannelGone, *ended);
  const std::string& name = options_.node->name();
  const bool closed = process_->at_end(OutputStream::kOut);
  if (closed) {
    const auto outcome = try_to([&] { return process_->wait(Deadline::after(1_s)); });
    if (outcome && *outcome) {
      const std::string said = errors_.empty() ? "" : fmt::format(": {}", printable(trim(errors_)));
      put(ChannelEvent::Kind::kSupervisorEnded,
          Error(ErrorCode::kUnavailable,
                fmt::format("the supervisor on {} ended with status {}{}", name, (*outcome)->exit_status, said),
                "was it killed, or its memory exhausted? Its ranks have ended with it"));
      return clean();
    }
    if (!heard_) throw outcome ? Error(ErrorCode::kUnavailable, "no answer from " + name) : Error(outcome.error());
  }
  const std::string_view state = closed ? "has closed" : "is silent";
  NodeAnswer answer = ask_node(options_.node->place(), Deadline::after(1_s));
  if (closed && answer.answers && !options_.node->is_here()) {
    // A machine that is being switched off may have refused just before its links went down.
    real_clock().sleep(300_ms);
    answer = ask_node(options_.node->place(), Deadline::after(1_s));
  }
  if (!answer.answers && !options_.node->is_here()) {
    put(ChannelEvent::Kind::kNodeDead,
        Error(ErrorCode::kUnavailable,
              fmt::format("node {} is dead: its channel {}, and it does not answer {}", name, state, answer.where),
              "is it on, and are its cables plugged in?"));
    // The shared connection would wait for a quarter of a minute more, and so would the one that ends over it.
    options_.node->disconnect();
    end_limit_ = 1_s;
    return;
  }
  put(ChannelEvent::Kind::kChannelGone,
      Error(ErrorCode::kUnavailable,
            fmt::format("the channel to {} {}, though the node answers {}", name, state, answer.where),
            "was ssh ended, here or there? Is the management network in order?"));
  clean();
}

std::optional<Error> NodeChannel::ended_allocation() const {
  const auto job = options_.node->ended_slurm_job();
  if (!job) return std::nullopt;
  return Error(ErrorCode::kUnavailable,
               fmt::format("Slurm job {} has ended, and with it all that ran on {}", *job, options_.node->name()),
               fmt::format("'sacct --jobs={} --format=State,Elapsed,Timelimit' says why; a longer limit is salloc's "
                           "--time",
                           *job));
}

// What is left there of the job, of a supervisor that cannot do it any more.
void NodeChannel::clean() {
  const auto ignored = try_to([&] {
    return options_.node->run({.argv = {options_.node->program(), "node", "clean", options_.tag}, .timeout = 6_s});
  });
}

void NodeChannel::close() {
  const auto ignored = try_to([&] {
    move_out();
    process_->close_input();
    const Deadline deadline = Deadline::after(end_limit_);
    while (!process_->at_end(OutputStream::kOut) && !deadline.expired()) take_in();
    process_->wait(Deadline::after(1_s));
  });
}

}  // namespace yoke::job
