#include "yoke/agent/relay.h"

#include "yoke/base/clock.h"
#include "yoke/base/error.h"

namespace yoke::agent {
namespace {

using namespace literals;

// How long input may wait for a turn.
constexpr Seconds kRelayTurn{0.01};
constexpr Seconds kRelayWriteLimit{5};
constexpr std::size_t kMaxRelayPiece = 1 << 17;

}  // namespace

Relay::Relay(const Command& command, OnBytes on_bytes, OnEnd on_end)
    : process_(command), on_bytes_(std::move(on_bytes)), on_end_(std::move(on_end)) {
  thread_ = std::thread([this] { live(); });
}

Relay::~Relay() {
  close_input();
  thread_.join();
}

void Relay::write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  to_write_ += bytes;
}

void Relay::close_input() {
  const std::lock_guard lock(mutex_);
  close_wanted_ = true;
}

void Relay::stop() { stop_wanted_ = true; }

// Entry of the thread: nothing leaves it.
void Relay::live() {
  const auto status = try_to([&] { return move_until_the_end(); });
  if (!status) process_.kill_tree();
  on_end_(status);
  ended_ = true;
}

int Relay::move_until_the_end() {
  while (!process_.at_end()) {
    if (stop_wanted_) {
      process_.kill_tree();
      break;
    }
    const bool wrote = move_input();
    if (!move_output() && !wrote) process_.poll_output(Deadline::after(kRelayTurn));
  }
  while (move_output()) {
  }
  const auto outcome = process_.wait(Deadline::after(10_s));
  if (!outcome) throw Error(ErrorCode::kTimeout, "it closed its output and does not end");
  if (!outcome->out.empty()) on_bytes_(OutputStream::kOut, outcome->out);
  if (!outcome->err.empty()) on_bytes_(OutputStream::kErr, outcome->err);
  return outcome->exit_status;
}

bool Relay::move_input() {
  std::string data;
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    data.swap(to_write_);
    close = close_wanted_;
  }
  // A program that no longer reads has ended, or its silence will tell.
  if (!data.empty()) {
    const auto written = try_to([&] { process_.write(data, Deadline::after(kRelayWriteLimit)); });
    if (!written && written.error().code() == ErrorCode::kInterrupted) throw Error(written.error());
  }
  if (close) process_.close_input();
  return !data.empty();
}

bool Relay::move_output() {
  bool moved = false;
  for (const OutputStream stream : {OutputStream::kOut, OutputStream::kErr}) {
    const std::string bytes = process_.read_bytes(stream, kMaxRelayPiece, Deadline::after(0_s));
    if (bytes.empty()) continue;
    on_bytes_(stream, bytes);
    moved = true;
  }
  return moved;
}

}  // namespace yoke::agent
