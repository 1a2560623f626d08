#include "yoke/fleet/channel.h"

#include <fmt/format.h>

#include "yoke/base/fields.h"

namespace yoke::fleet {

struct ProgramEnd {
  int exit_status = 0;
};

template <class Visitor>
void visit_fields(Visitor& visit, ProgramEnd& end) {
  visit.required("exit_status", end.exit_status);
}

namespace {

using namespace literals;

constexpr std::size_t kMaxPiece = 1 << 20;

}  // namespace

Channel::Channel(std::shared_ptr<Connection> connection, std::uint32_t id, std::string node)
    : connection_(std::move(connection)), id_(id), node_(std::move(node)) {}

Channel::~Channel() {
  kill();
  connection_->forget(id_);
}

void Channel::write(std::string_view data, Deadline deadline) {
  while (!data.empty()) {
    connection_->send({agent::FrameKind::kBytes, id_, std::string(data.substr(0, kMaxPiece))}, deadline);
    data.remove_prefix(std::min(data.size(), kMaxPiece));
  }
}

void Channel::close_input() {
  if (ended_) return;
  const auto ignored = try_to([&] { connection_->send({agent::FrameKind::kBytes, id_, {}}, Deadline::after(2_s)); });
}

// Takes the next frame; false where none came.
bool Channel::move(Deadline deadline) {
  if (ended_) return false;
  try {
    const auto frame = connection_->next(id_, deadline);
    if (!frame) return false;
    if (frame->kind == agent::FrameKind::kBytes) {
      const agent::AgentOutput output = agent::read_output(*frame);
      kept(output.stream).append(output.bytes);
    } else {
      ended_ = true;
      exit_status_ = from_json<ProgramEnd>(agent::read_answer(*frame, "the end of a program on " + node_)).exit_status;
    }
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    ended_ = true;
    failure_ = error;
    return false;
  }
}

std::optional<Process::Line> Channel::read_line(Deadline deadline) {
  for (;;) {
    for (const OutputStream stream : {OutputStream::kOut, OutputStream::kErr}) {
      auto line = kept(stream).take_line(ended_ ? LineBuffer::More::kNone : LineBuffer::More::kMayCome);
      if (line) return Process::Line{stream, *std::move(line)};
    }
    if (ended_ || deadline.expired()) return std::nullopt;
    move(deadline);
  }
}

std::string Channel::read_bytes(OutputStream stream, std::size_t most, Deadline deadline) {
  while (kept(stream).empty() && !ended_ && (move(deadline) || !deadline.expired())) {
  }
  return kept(stream).take_bytes(most);
}

bool Channel::at_end(OutputStream stream) const { return ended_ && kept_[static_cast<std::size_t>(stream)].empty(); }

std::optional<Outcome> Channel::wait(Deadline deadline) {
  while (!ended_ && (move(deadline) || !deadline.expired())) {
  }
  if (!ended_) return std::nullopt;
  if (failure_) throw Error(*failure_);
  return Outcome{.exit_status = exit_status_,
                 .out = kept(OutputStream::kOut).take_bytes(std::string::npos),
                 .err = kept(OutputStream::kErr).take_bytes(std::string::npos)};
}

void Channel::kill() noexcept {
  if (ended_) return;
  const auto ignored = try_to([&] {
    connection_->send({agent::FrameKind::kStop, id_, {}}, Deadline::after(2_s));
    wait(Deadline::after(3_s));
  });
}

}  // namespace yoke::fleet
