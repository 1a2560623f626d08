#include "yoke/agent/serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <list>
#include <thread>

#include "yoke/agent/agent_frame.h"
#include "yoke/agent/relay.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::agent {
namespace {

using namespace literals;

constexpr Seconds kAgentHeartbeatInterval{1};

// Frames of several threads on one descriptor.
class FrameWriter {
 public:
  explicit FrameWriter(int fd) : fd_(fd) {}

  // A head that is gone is told by the end of the input.
  void send(const AgentFrame& frame) noexcept {
    const auto bytes = try_to([&] { return encode(frame); });
    write_bytes(bytes ? *bytes : encode(error_frame(frame.id, bytes.error())));
  }

 private:
  void write_bytes(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    while (!bytes.empty()) {
      const ssize_t count = write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  int fd_;
  std::mutex mutex_;
};

class AgentServer {
 public:
  AgentServer(std::span<const AgentAction> table, int in, int out) : table_(table), in_(in), writer_(out) {}

  int run() {
    writer_.send(time_frame(FrameKind::kHello, agent_clock_now()));
    int status = kExitOk;
    try {
      while (!stopped_ && interrupt_signal() == 0 && take_turn()) {
      }
    } catch (const Error& error) {
      writer_.send(error_frame(0, error));
      status = error.exit_status();
    }
    if (stopped_ && interrupt_signal() == 0) raise(SIGTERM);  // ends the waits of what is being answered
    for (Channel& channel : channels_) {
      if (stopped_) channel.relay->stop();
      channel.relay->close_input();
    }
    for (Answering& answering : answering_) answering.thread.join();
    channels_.clear();
    return interrupt_signal() == 0 || stopped_ ? status : 128 + interrupt_signal();
  }

 private:
  struct Answering {
    std::atomic<bool> done{false};
    std::thread thread;
  };
  struct Channel {
    std::uint32_t id;
    std::unique_ptr<Relay> relay;
  };

  // False at the end of the input.
  bool take_turn() {
    pollfd waiting{in_, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(kAgentHeartbeatInterval.value * 1000));
    forget_what_ended();
    if (!answering_.empty()) writer_.send(time_frame(FrameKind::kHeartbeat, agent_clock_now()));
    if (ready <= 0) return true;
    char buffer[1 << 16];
    const ssize_t count = read(in_, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count <= 0) return false;
    reader_.feed({buffer, static_cast<std::size_t>(count)});
    while (const auto frame = reader_.next()) take(*frame);
    return true;
  }

  void forget_what_ended() {
    answering_.remove_if([](Answering& answering) {
      if (!answering.done) return false;
      answering.thread.join();
      return true;
    });
    channels_.remove_if([](const Channel& channel) { return channel.relay->ended(); });
  }

  void take(const AgentFrame& frame) {
    if (frame.kind == FrameKind::kQuestion) return take_question(frame);
    if (frame.kind == FrameKind::kStop && frame.id == 0) {
      stopped_ = true;
      return;
    }
    for (Channel& channel : channels_) {
      if (channel.id != frame.id) continue;
      if (frame.kind == FrameKind::kStop) {
        channel.relay->stop();
      } else if (frame.kind == FrameKind::kBytes && frame.payload.empty()) {
        channel.relay->close_input();
      } else if (frame.kind == FrameKind::kBytes) {
        channel.relay->write(frame.payload);
      }
    }
  }

  void take_question(const AgentFrame& frame) {
    const auto begun = try_to([&] {
      AgentQuestion question = read_question(frame);
      const AgentAction& action = find(question.action);
      if (action.program) {
        channels_.push_back({frame.id, start_relay(frame.id, action.program(question.question))});
      } else {
        begin_answer(frame.id, action, std::move(question.question));
      }
    });
    if (!begun) writer_.send(error_frame(frame.id, begun.error()));
  }

  const AgentAction& find(const std::string& name) const {
    for (const AgentAction& action : table_) {
      if (action.name != name) continue;
      if (action.rights == AgentRights::kRoot && geteuid() != 0) {
        throw Error(ErrorCode::kPermission, fmt::format("'{}' needs root", name));
      }
      return action;
    }
    throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no action of an agent", printable(name, 80)));
  }

  std::unique_ptr<Relay> start_relay(std::uint32_t id, const Command& command) {
    return std::make_unique<Relay>(
        command,
        [this, id](OutputStream stream, std::string_view bytes) { writer_.send(output_frame(id, stream, bytes)); },
        [this, id](const Result<int>& status) {
          writer_.send(status
                           ? answer_frame(id, Document::map({{"exit_status", Document::number(std::int64_t{*status})}}))
                           : error_frame(id, status.error()));
        });
  }

  void begin_answer(std::uint32_t id, const AgentAction& action, Document question) {
    Answering& answering = answering_.emplace_back();
    answering.thread = std::thread([this, id, &action, &answering, question = std::move(question)] {
      writer_.send(answer(id, action, question));
      answering.done = true;
    });
  }

  // Whatever it is, there is an answer.
  AgentFrame answer(std::uint32_t id, const AgentAction& action, const Document& question) noexcept {
    AgentContext context(state_, [this, id](std::string_view what) {
      writer_.send({FrameKind::kProgress, id, std::string(what)});
    });
    try {
      return answer_frame(id, action.answer(question, context));
    } catch (const Error& error) {
      return error_frame(id, error);
    } catch (const std::exception& failure) {
      return error_frame(id, Error(ErrorCode::kInternal, failure.what()));
    }
  }

  std::span<const AgentAction> table_;
  int in_;
  FrameWriter writer_;
  AgentFrameReader reader_;
  AgentState state_;
  std::list<Answering> answering_;
  std::list<Channel> channels_;
  bool stopped_ = false;
};

}  // namespace

int serve_actions(std::span<const AgentAction> table, int in, int out) { return AgentServer(table, in, out).run(); }

}  // namespace yoke::agent
