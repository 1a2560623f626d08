// Starts the ranks of an engine, owns them, and gives the EngineConnection to ask them. Ranks are
//   - processes of a job, here or on the nodes of a cluster: a dead one is started again, and answers go on. A single
//     rank is a process too: what kills it (a bad file, a failed check, no memory) does not kill its client;
//   - threads of this process, with Transport::kThreads;
//   - processes that mpirun starts, with Transport::kMpi;
//   - the processes of which a launcher started this one as rank 0: the others call follow_engine().
//
//   EngineHost host({.engine = {.model = folder}, .ranks = 2});
//   host.connection().submit(…);
//
// Ctrl-C, SIGTERM and SIGHUP are held back from its making to its end, for the owner to take: what an interrupt means
// is the owner's to say, and ranks must be ended over channels that an interrupt would break off. One thread owns it.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "yoke/base/files.h"
#include "yoke/engine/engine_connection.h"
#include "yoke/engine/options.h"
#include "yoke/job/deferred_signals.h"
#include "yoke/rank/start.h"
#include "yoke/spec/cluster.h"

namespace yoke::serve {

struct EngineHostSpec {
  engine::EngineOptions engine;
  rank::Transport transport = rank::Transport::kAuto;
  int ranks = 0;                                           // 0: one for each node, or one on this machine
  std::optional<spec::Cluster> cluster;                    // whose first node is this machine
  std::optional<job::RankPlace> place = {};                // where a launcher started this process as rank 0
  std::function<void(const std::string&)> on_notice = {};  // what happens to ranks and links; from another thread
  std::function<void(std::optional<int> rank)> on_rank_lost = {};  // it is started again; likewise
  std::function<void(const std::string& node, const job::NodeState&)> on_node_state = {};  // each second; likewise
};

class EngineHost {
 public:
  explicit EngineHost(EngineHostSpec spec);
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;
  ~EngineHost();  // ends the ranks

  engine::EngineConnection& connection() { return *connection_; }

  std::optional<int> take_interrupt() const { return held_.take(); }
  // The owner is about to end it because of this signal: without waiting for what ranks are at.
  void end_for(int signal_number);

 private:
  rank::RanksSpec ranks_here();
  rank::RanksSpec ranks_elsewhere();
  void report_end(const Error& reason);
  void keep_line(const std::string& line);
  Error with_last_lines(const Error& error) const;
  bool all_over(Deadline deadline);

  const job::DeferredSignals held_;  // first: threads inherit it, and it goes last
  EngineHostSpec spec_;
  std::optional<ScratchDir> folder_;  // of the socket
  std::optional<Socket> rank_line_;   // rank 0's end of the line, where it is in this process
  std::mutex connection_mutex_;       // between report_end() and our end
  std::unique_ptr<engine::EngineConnection> connection_;
  std::atomic<bool> ranks_started_{false};
  std::optional<int> ends_for_;
  int interrupts_at_end_ = 0;
  std::deque<std::string> last_lines_;  // that ranks wrote: the words of one that fails
  std::unique_ptr<rank::Ranks> ranks_;
  std::future<void> waiting_;  // for the ranks; last: it uses the above
};

// How many ranks a spec stands for.
int rank_count(const EngineHostSpec& spec);

// This process is another rank than the first of a launcher's: its part, until the engine ends. What keeps it from
// joining the group is thrown; what ended it then, which rank 0 tells too, is returned.
std::optional<Error> follow_engine(const job::RankPlace& place, const EngineHostSpec& spec);

}  // namespace yoke::serve
