#include "yoke/job/supervisor_loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/process_tree.h"
#include "yoke/job/process_watch.h"

namespace yoke::job {
using namespace literals;
namespace {

constexpr Seconds kHeadSilence{3};
// A rank that speaks with us learns why it ends, and may end by itself first.
constexpr Seconds kReportLimit{0.3};
constexpr Seconds kFarewell{1};
constexpr Seconds kOrphanGrace{0.3};

// Not for the ranks: a channel that one of them held would not close with us.
UniqueFd own_copy(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)); }

}  // namespace

SupervisorLoop::SupervisorLoop()
    : head_(own_copy(STDIN_FILENO), own_copy(STDOUT_FILENO)),
      last_heard_(real_clock().now()),
      kills_lately_(count_out_of_memory_kills()),
      kills_before_(kills_lately_) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signals_ = UniqueFd(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) throw system_error(errno, "cannot watch for signals");
  tell(to_message(MessageType::kHello, own_hello()));
}

int SupervisorLoop::run() {
  while (!finished()) {
    wait_for_something();
    take_signals();
    hear_head();
    hear_ranks();
    reap();
    poll_once();
    take_turns();
  }
  return 0;
}

void SupervisorLoop::tell(const Message& message) {
  if (head_here_) head_.queue(message);
}

bool SupervisorLoop::finished() {
  if (!ending_ || !ranks_.empty()) return false;
  if (!farewell_) {
    end_orphans();
    tell({MessageType::kGone});
    farewell_ = Deadline::after(kFarewell);
  }
  if (head_here_ && !head_.write_some()) head_here_ = false;
  return !head_here_ || head_.queued() == 0 || farewell_->expired();
}

// What left its rank's tree by every way there is has become a child of ours, as its parents are gone.
void SupervisorLoop::end_orphans() {
  const Deadline gentle = Deadline::after(kOrphanGrace), last = Deadline::after(kOrphanGrace + kFarewell);
  for (std::vector<pid_t> orphans = living_children(); !orphans.empty() && !last.expired();
       orphans = living_children()) {
    for (const pid_t orphan : orphans) kill(orphan, gentle.expired() ? SIGKILL : SIGTERM);
    real_clock().sleep({0.02});
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

void SupervisorLoop::wait_for_something() {
  std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0}};
  if (head_here_) {
    fds.push_back({head_.in_fd(), POLLIN, 0});
    if (head_.queued() > 0) fds.push_back({head_.out_fd(), POLLOUT, 0});
  }
  for (SupervisedRank& rank : ranks_) {
    if (may_read_output()) {
      fds.push_back({rank.out.get(), POLLIN, 0});  // poll skips negative descriptors
      fds.push_back({rank.err.get(), POLLIN, 0});
    }
    if (rank.line) {
      fds.push_back({rank.line->in_fd(), static_cast<short>(rank.line->queued() > 0 ? POLLIN | POLLOUT : POLLIN), 0});
    }
  }
  const bool in_turns =
      ending_ || std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.is_ending(); });
  poll(fds.data(), fds.size(), in_turns ? 10 : 50);
}

void SupervisorLoop::take_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGCHLD) end_all();
  }
}

void SupervisorLoop::hear_head() {
  if (!head_here_) return;
  try {
    const bool open = head_.read_some();
    while (const auto message = head_.next()) {
      last_heard_ = real_clock().now();
      take(*message);
    }
    if (!open || !head_.write_some()) lose_head();
  } catch (const Error& error) {
    fail(error);
  }
  if (head_here_ && to_seconds(real_clock().now() - last_heard_) > kHeadSilence) {
    fmt::print(stderr, "the head of the job was silent for {}\n", yoke::to_string(kHeadSilence));
    lose_head();
  }
}

void SupervisorLoop::lose_head() {
  head_here_ = false;
  end_all();
}

void SupervisorLoop::fail(const Error& error) {
  tell(error_message(MessageType::kFailed, error));
  end_all();
}

void SupervisorLoop::take(const Message& message) {
  switch (message.type) {
    case MessageType::kStart:
      return start_ranks(read_payload<StartRanks>(message));
    case MessageType::kCredit:
      credit_ += read_payload<Credit>(message).bytes;
      return;
    case MessageType::kAbort:
    case MessageType::kMembership:
      return notify_ranks(message);
    case MessageType::kRestart:
      return restart_ranks(read_payload<RankList>(message));
    case MessageType::kStop:
      if (!message.payload.empty()) notify_ranks(message);
      return end_all();
    default:
      return;  // hello and heartbeats have done their work by coming
  }
}

void SupervisorLoop::notify_ranks(const Message& message) {
  for (SupervisedRank& rank : ranks_) {
    if (rank.line) rank.line->queue(message);
  }
}

void SupervisorLoop::end_all() {
  if (ending_) return;
  ending_ = true;
  const bool reported = head_here_ && std::any_of(ranks_.begin(), ranks_.end(),
                                                  [](const auto& rank) { return rank.speaks && !rank.wait_status(); });
  end_at_ = Deadline::after(reported ? kReportLimit : 0_s);
}

}  // namespace yoke::job
