#include "yoke/base/process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/log.h"
#include "yoke/base/process_start.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

// Output that is still in the pipe when the program ends is read; any other process that holds the pipe is not waited
// for longer.
constexpr Seconds kDrainTime{1};
// A process that SIGKILL does not end within this hangs in the kernel (a dead disk or network volume).
constexpr Seconds kKillTime{10};

// write(2) to a pipe whose reader is gone raises SIGPIPE, which would end us. Held back in this thread only and taken
// out again, so that the program's own setting is left alone.
class SigpipeHeldBack {
 public:
  SigpipeHeldBack() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  SigpipeHeldBack(const SigpipeHeldBack&) = delete;
  SigpipeHeldBack& operator=(const SigpipeHeldBack&) = delete;
  ~SigpipeHeldBack() {
    const timespec now{};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

}  // namespace

Process::Process(Command command) : command_(std::move(command)), token_(random_token_hex(16)) {
  interrupts_ = interrupts_received();
  StartedProgram started = start_program(command_, token_);
  pid_ = started.pid;
  input_ = std::move(started.input);
  stream(OutputStream::kOut).fd = std::move(started.out);
  stream(OutputStream::kErr).fd = std::move(started.err);
  if (input_) to_write_ = std::move(command_.input);
  // Scripts for other machines are long: a line shows which command it is, -vv shows all of it.
  const std::string words = fmt::format("{}", fmt::join(command_.argv, " "));
  log(LogLevel::kDebug, "run {} (process {})", printable(words, 400), pid_);
  log(LogLevel::kTrace, "process {}: {}", pid_, printable(words, 4000));
}

Process::Process(Process&& other) noexcept
    : command_(std::move(other.command_)),
      token_(std::move(other.token_)),
      pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      to_write_(std::move(other.to_write_)),
      written_(other.written_),
      streams_(std::move(other.streams_)),
      status_(other.status_),
      truncated_(other.truncated_),
      interrupts_(other.interrupts_) {}

Process::~Process() {
  input_.reset();
  for (Stream& each : streams_) each.fd.reset();
  kill_tree();
}

void Process::write(std::string_view data, Deadline deadline) {
  to_write_.erase(0, std::exchange(written_, 0));
  to_write_ += data;
  while (input_ && written_ < to_write_.size()) {
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("'{}' did not take its input in time", to_string(command_)));
    }
    wait_for_output(deadline.poll_timeout_ms());
  }
  if (!input_) {
    throw Error(ErrorCode::kUnavailable, fmt::format("'{}' has closed its input", to_string(command_)),
                "it has probably ended");
  }
}

void Process::close_input() { input_.reset(); }

std::optional<Process::Line> Process::read_line(Deadline deadline) {
  for (;;) {
    for (const OutputStream which : {OutputStream::kOut, OutputStream::kErr}) {
      Stream& from = stream(which);
      if (auto line = from.kept.take_line(from.fd ? LineBuffer::More::kMayCome : LineBuffer::More::kNone)) {
        return Line{which, *std::move(line)};
      }
    }
    if (at_end() || deadline.expired()) return std::nullopt;
    wait_for_output(deadline.poll_timeout_ms());
  }
}

bool Process::poll_output(Deadline deadline) {
  for (;;) {
    for (const Stream& each : streams_) {
      if (!each.kept.empty()) return true;
    }
    if (at_end()) return true;
    if (deadline.expired()) return false;
    wait_for_output(deadline.poll_timeout_ms());
  }
}

std::string Process::read_bytes(OutputStream which, std::size_t most, Deadline deadline) {
  Stream& from = stream(which);
  while (from.kept.empty() && from.fd && !deadline.expired()) wait_for_output(deadline.poll_timeout_ms());
  return from.kept.take_bytes(most);
}

bool Process::at_end() const { return at_end(OutputStream::kOut) && at_end(OutputStream::kErr); }

bool Process::at_end(OutputStream which) const { return !stream(which).fd && stream(which).kept.empty(); }

std::optional<Outcome> Process::wait(Deadline deadline) {
  std::optional<Deadline> drained;
  for (int pause_ms = 1; !status_;) {
    const bool open = stream(OutputStream::kOut).fd || stream(OutputStream::kErr).fd;
    if (exited()) {
      if (!drained) drained = Deadline::after(kDrainTime);
      if (!open || drained->expired()) break;
    } else if (deadline.expired()) {
      return std::nullopt;
    }
    // While its streams are open their end wakes us. Else a short pause: it is about to exit, or has become silent.
    wait_for_output(std::min(open ? 50 : pause_ms, std::max(1, deadline.poll_timeout_ms())));
    if (!open) pause_ms = std::min(20, pause_ms * 2);
  }
  kill_rest();
  reap();
  for (const OutputStream which : {OutputStream::kOut, OutputStream::kErr}) {
    // What is still in the pipe; the one that fills it without end is not read for ever.
    for (const Deadline end = Deadline::after(kDrainTime); stream(which).fd && read_stream(which) && !end.expired();) {
    }
    end_stream(which);
  }
  Outcome outcome;
  outcome.exit_status = exit_status_of(status_.value_or(0));
  if (status_ && WIFSIGNALED(*status_)) outcome.signal = WTERMSIG(*status_);
  outcome.out = stream(OutputStream::kOut).kept.take_bytes(std::string::npos);
  outcome.err = stream(OutputStream::kErr).kept.take_bytes(std::string::npos);
  outcome.truncated = truncated_;
  return outcome;
}

void Process::kill_tree() noexcept {
  if (pid_ < 0 || status_) return;
  end_tree(KillTarget::kAll);
  reap();
}

void Process::kill_rest() noexcept {
  if (pid_ < 0 || status_ || command_.kill_scope == KillScope::kGroup) return;
  end_tree(KillTarget::kDescendants);
}

// The child is not reaped before this ends, so its number cannot have become somebody else's process or group.
void Process::end_tree(KillTarget whom) noexcept try {
  const bool whole_tree = command_.kill_scope == KillScope::kTree;
  ProcessTree tree(pid_, token_);
  const auto gone = [&] { return exited() && (!whole_tree || tree.living().empty()); };
  const auto send = [&](int number) {
    kill(-pid_, number);
    if (!whole_tree) return;
    for (const ProcessId& each : tree.living()) {
      if (getpgid(each.pid) != pid_) kill(each.pid, number);
    }
  };
  const auto wait_until_gone = [&](Seconds time, int number) {
    const Deadline deadline = Deadline::after(time);
    for (int pause_ms = 2; !gone() && !deadline.expired(); pause_ms = std::min(100, pause_ms * 2)) {
      pump_quietly(pause_ms);
      if (whole_tree) tree.look();
      if (number == SIGKILL) send(number);  // again and again: it may fork between our looks
    }
  };
  if (whole_tree) tree.look();
  if (whom == KillTarget::kDescendants && tree.living().empty()) return;
  send(SIGTERM);
  wait_until_gone(command_.grace, SIGTERM);
  if (whole_tree && gone()) return;
  send(SIGKILL);
  wait_until_gone(kKillTime, SIGKILL);
} catch (const std::exception&) {
  kill(-pid_, SIGKILL);  // out of memory: at least the group
}

bool Process::exited() const {
  if (status_) return true;
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != EINTR) return true;  // ECHILD: somebody ignores SIGCHLD, and it was reaped for us
  }
  return info.si_pid == pid_;
}

void Process::reap() noexcept {
  if (pid_ < 0 || status_) return;
  int status = 0;
  pid_t reaped = 0;
  // A child that even SIGKILL did not end is left to the kernel, rather than hanging with it.
  const int options = exited() ? 0 : WNOHANG;
  do {
    reaped = waitpid(pid_, &status, options);
  } while (reaped < 0 && errno == EINTR);
  status_ = reaped == pid_ ? status : SIGKILL;
}

void Process::wait_for_output(int timeout_ms) {
  // Only what came since its start: cleaning up after a Ctrl-C runs programs too.
  if (interrupts_received() != interrupts_) throw_if_interrupted();
  pump(timeout_ms);
}

// One round: waits until a stream is ready, at most this long, and moves what can be moved.
void Process::pump(int timeout_ms) {
  const bool writing = input_ && written_ < to_write_.size();
  if (input_ && !writing && command_.input_mode == InputMode::kText) input_.reset();
  pollfd fds[3] = {{stream(OutputStream::kOut).fd.get(), POLLIN, 0},  // poll skips negative descriptors
                   {stream(OutputStream::kErr).fd.get(), POLLIN, 0},
                   {writing ? input_.get() : -1, POLLOUT, 0}};
  if (poll(fds, 3, timeout_ms) < 0) {
    if (errno == EINTR) return;
    throw system_error(errno, fmt::format("cannot wait for '{}'", to_string(command_)));
  }
  if (fds[0].revents != 0) read_stream(OutputStream::kOut);
  if (fds[1].revents != 0) read_stream(OutputStream::kErr);
  if (fds[2].revents != 0) feed_input();
}

// While killing: what on_line throws must not keep us from it.
void Process::pump_quietly(int timeout_ms) noexcept {
  try {
    pump(timeout_ms);
  } catch (...) {
    command_.on_line = nullptr;
  }
}

void Process::feed_input() {
  const SigpipeHeldBack held_back;
  const ssize_t count = ::write(input_.get(), to_write_.data() + written_, to_write_.size() - written_);
  if (count >= 0) {
    written_ += static_cast<std::size_t>(count);
  } else if (errno != EINTR && errno != EAGAIN) {
    input_.reset();  // EPIPE: it does not read on, which for run() is its own business
  }
}

// Whether there was something.
bool Process::read_stream(OutputStream which) {
  char buffer[1 << 16];
  const ssize_t count = read(stream(which).fd.get(), buffer, sizeof buffer);
  if (count > 0) {
    take_in(which, {buffer, static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    end_stream(which);
  }
  return count > 0;
}

void Process::take_in(OutputStream which, std::string_view data) {
  Stream& into = stream(which);
  truncated_ |= !into.kept.append_within(command_.output_limit, data);
  if (!command_.on_line) return;
  into.to_deliver.append(data);
  deliver_lines(which, LineBuffer::More::kMayCome);
}

void Process::end_stream(OutputStream which) {
  stream(which).fd.reset();
  if (command_.on_line) deliver_lines(which, LineBuffer::More::kNone);
}

void Process::deliver_lines(OutputStream which, LineBuffer::More more) {
  while (const auto line = stream(which).to_deliver.take_line(more)) command_.on_line(which, *line);
}

}  // namespace yoke
