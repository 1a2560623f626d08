// The loop of a supervisor (supervisor.h): what comes from the head, what comes from the ranks, and their ends. Used by
// `yoke node` only, a program with one thread.
#pragma once
#include <cstdint>
#include <list>
#include <optional>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/job/job_messages.h"
#include "yoke/job/message_stream.h"
#include "yoke/job/supervised_rank.h"
#include "yoke/job/supervisor.h"

namespace yoke::job {

class SupervisorLoop {
 public:
  SupervisorLoop();  // over standard input and output
  SupervisorLoop(const SupervisorLoop&) = delete;
  SupervisorLoop& operator=(const SupervisorLoop&) = delete;

  int run();  // until all has ended; the exit status

 private:
  using Rank = std::list<SupervisedRank>::iterator;

  // supervisor_loop.cc: the head
  bool finished();
  void end_orphans();
  void wait_for_something();
  void take_signals();
  void tell(const Message& message);
  void hear_head();
  void lose_head();
  void fail(const Error& error);
  void take(const Message& message);
  void notify_ranks(const Message& message);
  void end_all();

  // supervisor_ranks.cc: the ranks
  void start_ranks(StartRanks job);
  void start_rank(const RankStart& start);
  void restart_ranks(const RankList& list);
  void hear_ranks();
  void forward_output(const SupervisedRank& rank, UniqueFd& from, int stream);
  void hear_line(SupervisedRank& rank);
  void pass_on(int rank, const Message& message);
  void reap();
  void report_end(const SupervisedRank& rank, int status);
  bool memory_kills_grew() const;
  void poll_once();
  void take_turns();
  void close(Rank rank);

  // Without a head the output goes nowhere, but must not hold up a rank that is ending.
  bool may_read_output() const { return credit_ > 0 || !head_here_; }

  MessageStream head_;
  UniqueFd signals_;
  StartRanks job_;
  std::list<SupervisedRank> ranks_;
  long credit_ = kOutputCredit;
  bool head_here_ = true;
  bool ending_ = false;
  std::optional<Deadline> end_at_;    // when the ranks are signalled
  std::optional<Deadline> farewell_;  // how long the last messages may take to leave
  Instant last_heard_{};
  Instant next_look_{};
  unsigned looks_ = 0;
  std::optional<std::uint64_t> kills_lately_;  // for want of memory, as the kernel counts
  std::optional<std::uint64_t> kills_before_;
};

}  // namespace yoke::job
