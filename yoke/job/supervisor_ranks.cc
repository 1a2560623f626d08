// The other half of SupervisorLoop: the ranks, from their start to their end.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/process.h"
#include "yoke/job/process_watch.h"
#include "yoke/job/supervisor_loop.h"

namespace yoke::job {
namespace {

constexpr Seconds kLookInterval{kHeartbeatSeconds / 2};
constexpr unsigned kLooksPerState = 10;
constexpr std::size_t kMaxPiece = 32 << 10;

}  // namespace

void SupervisorLoop::start_ranks(StartRanks job) {
  if (job.argv.empty()) throw Error(ErrorCode::kInvalid, "there is no program to start");
  job_ = std::move(job);
  for (const RankStart& start : job_.ranks) start_rank(start);
}

void SupervisorLoop::start_rank(const RankStart& start) {
  ranks_.emplace_back(job_, start);
  tell(to_message(MessageType::kStarted, RankStarted{start.rank, ranks_.back().pid()}));
}

void SupervisorLoop::restart_ranks(const RankList& list) {
  for (const int number : list.ranks) {
    const auto start =
        std::find_if(job_.ranks.begin(), job_.ranks.end(), [&](const auto& rank) { return rank.rank == number; });
    if (start == job_.ranks.end()) continue;
    ++start->restarts;
    const auto found =
        std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& rank) { return rank.rank() == number; });
    if (found != ranks_.end()) {
      found->restart_wanted = *start;
      found->end(SupervisedRank::EndMode::kAtOnce, job_.grace);
      continue;
    }
    start_rank(*start);
  }
}

void SupervisorLoop::hear_ranks() {
  for (SupervisedRank& rank : ranks_) {
    forward_output(rank, rank.out, STDOUT_FILENO);
    forward_output(rank, rank.err, STDERR_FILENO);
    if (rank.line) hear_line(rank);
  }
}

void SupervisorLoop::forward_output(const SupervisedRank& rank, UniqueFd& from, int stream) {
  if (!from || !may_read_output()) return;
  char buffer[kMaxPiece];
  const std::size_t most = head_here_ ? std::min(kMaxPiece, static_cast<std::size_t>(credit_)) : kMaxPiece;
  const ssize_t count = read(from.get(), buffer, most);
  if (count > 0) {
    credit_ -= count;
    tell(output_message(rank.rank(), stream, {buffer, static_cast<std::size_t>(count)}));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    from.reset();
  }
}

void SupervisorLoop::hear_line(SupervisedRank& rank) {
  try {
    const bool open = rank.line->read_some();
    while (const auto message = rank.line->next()) {
      rank.speaks = true;
      pass_on(rank.rank(), *message);
    }
    if (!open || !rank.line->write_some()) rank.line.reset();
  } catch (const Error&) {
    rank.line.reset();  // it does not speak as we do: then it is a rank without a line
  }
}

void SupervisorLoop::pass_on(int rank, const Message& message) {
  if (message.type == MessageType::kJoin) {
    auto join = read_payload<Join>(message);
    join.rank = rank;
    tell(to_message(message.type, join));
  } else if (message.type == MessageType::kPath) {
    auto report = read_payload<PathReport>(message);
    report.rank = rank;
    tell(to_message(message.type, report));
  } else if (message.type == MessageType::kReady) {
    tell(to_message(message.type, RankNote{rank}));
  }
}

// Orphans of the ranks become our children, and are reaped here too.
void SupervisorLoop::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (SupervisedRank& rank : ranks_) {
      if (rank.pid() != pid || rank.wait_status()) continue;
      rank.note_exit(status);
      report_end(rank, status);
      // What it left running ends with it.
      rank.end(SupervisedRank::EndMode::kGently, job_.grace);
    }
  }
}

void SupervisorLoop::report_end(const SupervisedRank& rank, int status) {
  RankEnded ended{.rank = rank.rank(), .exit_status = exit_status_of(status), .ended_by_us = rank.ended_by_us()};
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.out_of_memory = ended.signal == SIGKILL && !ended.ended_by_us && memory_kills_grew();
  tell(to_message(MessageType::kEnded, ended));
}

bool SupervisorLoop::memory_kills_grew() const {
  const auto now = count_out_of_memory_kills();
  return now && kills_before_ && *now > *kills_before_;
}

void SupervisorLoop::poll_once() {
  const Instant now = real_clock().now();
  if (now < next_look_) return;
  next_look_ = now + to_chrono(kLookInterval);
  if (++looks_ % 2 == 0) tell({MessageType::kHeartbeat});
  // A count from half a second ago at least: the kernel counts before the process is seen to be gone.
  if (looks_ % 5 == 0) kills_before_ = std::exchange(kills_lately_, count_out_of_memory_kills());
  if (job_.reports_state && looks_ % kLooksPerState == 0) {
    tell(to_message(MessageType::kNodeState, read_node_state(DiskTree(), job_.interfaces)));
  }
  for (SupervisedRank& rank : ranks_) {
    if (rank.wait_status() || rank.is_ending()) continue;
    rank.mark_stalled(is_stopped(rank.pid()));
    if (!rank.is_stalled() || rank.stall_reported) continue;
    rank.stall_reported = true;
    tell(to_message(MessageType::kStopped, RankNote{rank.rank()}));
  }
}

void SupervisorLoop::take_turns() {
  if (ending_ && end_at_->expired()) {
    for (SupervisedRank& rank : ranks_) {
      if (!rank.is_ending()) rank.end(SupervisedRank::EndMode::kGently, job_.grace);
    }
  }
  for (Rank rank = ranks_.begin(); rank != ranks_.end();) {
    // Who reads slowly gets all of a rank that ends well; a job that is being ended does not wait for it.
    if (!may_read_output() && !ending_) rank->hold_output_end();
    if (!rank->is_ending() || !rank->take_turn() || !rank->is_closed()) {
      ++rank;
      continue;
    }
    close(rank++);
  }
}

void SupervisorLoop::close(Rank rank) {
  const auto wanted = ending_ ? std::nullopt : rank->restart_wanted;
  tell(to_message(MessageType::kClosed, RankNote{rank->rank()}));
  ranks_.erase(rank);
  if (!wanted) return;
  try {
    start_rank(*wanted);
  } catch (const Error& error) {
    fail(error);
  }
}

}  // namespace yoke::job
