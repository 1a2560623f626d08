// One rank as its supervisor has it: the process, its two output pipes, its line (the socket behind YOKE_JOB_FD), and
// the whole tree that it may have started. Starting returns once the program runs, or throws why not. Ending takes
// turns of the supervisor's loop: SIGTERM to the whole tree, SIGKILL after the grace. Used by supervisor.cc only, which
// is a program with one thread: a rank dies with the thread that forked it (PR_SET_PDEATHSIG).
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/process_tree.h"
#include "yoke/job/job_messages.h"
#include "yoke/job/message_stream.h"

namespace yoke::job {

class SupervisedRank {
 public:
  SupervisedRank(const StartRanks& job, const RankStart& start);
  SupervisedRank(SupervisedRank&&) = default;

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }

  UniqueFd out, err;                             // missing after their end
  std::optional<MessageStream> line;             // missing once the rank closed it, or wrote nonsense
  bool speaks = false;                           // something came over the line
  std::optional<RankStart> restart_wanted = {};  // once it is over

  // Once waitpid() told of it.
  void note_exit(int wait_status);
  std::optional<int> wait_status() const { return wait_status_; }

  // Ends the tree from now on. `at_once` leaves out the SIGTERM, for what stands still.
  enum class EndMode { kGently, kAtOnce };
  void end(EndMode manner, Seconds grace);
  bool is_ending() const { return kill_at_.has_value(); }
  bool ended_by_us() const { return ended_by_us_; }
  // A turn of the ending: looks for what is left, and signals it. True once nothing is.
  bool take_turn();
  // Nothing is left, and its output has come to an end or was waited for long enough.
  bool is_closed() const;
  void hold_output_end();  // while nobody reads its output: restarts the wait for its end

  // How long it has been seen to stand still.
  void mark_stalled(bool stopped);
  bool is_stalled() const;
  bool stall_reported = false;

 private:
  void send(int signal_number);

  int rank_ = 0;
  std::string token_;
  pid_t pid_ = -1;
  std::optional<ProcessTree> tree_;
  std::optional<int> wait_status_;
  std::optional<Deadline> kill_at_;
  std::optional<Deadline> output_end_;  // set once the tree is gone
  std::optional<Instant> stopped_since_;
  Instant next_turn_{};
  bool ended_by_us_ = false;
};

}  // namespace yoke::job
