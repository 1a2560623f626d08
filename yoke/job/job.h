// A job: ranks on nodes, from their start to their end. docs/jobs.md tells what runs where and what is told apart.
//
//   Job job({.nodes = {{.node = cluster.nodes[0], .ranks = 1}, {.node = cluster.nodes[1], .ranks = 1}},
//            .argv = {"hostname"}, .on_output = [](const RankOutput& line) { … }});
//   const JobOutcome outcome = job.wait();
//
// The constructor checks the spec and begins to start; everything else is told by wait(), which calls the hooks in the
// caller's thread. Behind it are one thread for the job and one for each node (node_channel.h). stop() may be called
// from any thread. Ctrl-C, SIGTERM and SIGHUP end all ranks on all nodes, then wait() throws Error(kInterrupted),
// unless the spec leaves them to the caller. For that the signals are held back in the thread that makes the Job until
// it goes, so make and destroy it in one thread. When a Job is gone, nothing of it is left on any node that still
// answers.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/process.h"
#include "yoke/base/units.h"
#include "yoke/job/job_messages.h"
#include "yoke/spec/cluster.h"

namespace yoke::fleet {
class Node;  // yoke/fleet/node.h
}
namespace yoke::job {

struct JobNode {
  spec::ClusterNode node;
  int ranks = 1;
  std::vector<Variable> environment = {};  // of its ranks; before that of the spec, which wins
  std::vector<std::string> argv = {};      // of its ranks, in place of the spec's; empty: the spec's
  friend bool operator==(const JobNode&, const JobNode&) = default;
};

// So many ranks over the nodes: all of one node before the next, as evenly as it goes, so that ranks of a node have
// neighbouring numbers. Nodes that get none are left out.
std::vector<JobNode> spread_ranks(const std::vector<spec::ClusterNode>& nodes, int ranks);

// This machine, as the only node of a job without a cluster.
spec::ClusterNode this_machine();

enum class JobPolicy {
  kStop,     // the first failure ends the job
  kRestart,  // what is missing is started again, and the others are told to rejoin
};

// The ways in which a job fails, told apart by evidence.
enum class CauseKind {
  kNotStarted,       // hosts that do not answer, no such program, …
  kRankExited,       // with another status than 0
  kRankKilled,       // by a signal
  kOutOfMemory,      // killed by the kernel, whose count of such kills grew
  kRankStopped,      // stands still: SIGSTOP
  kRailsCut,         // all rails between two nodes that both live
  kGroupLost,        // a rank left its group, and nothing explains why
  kNodeDead,         // its channel is lost and it does not answer by any way
  kChannelGone,      // its channel is lost, but the node answers
  kSupervisorEnded,  // our own program over there was killed, or failed
  kStopped,          // stop() was called, or a signal came
  kTimeLimit,        // its time was up
};
constexpr auto enum_names(CauseKind) {
  using K = CauseKind;
  return std::array{std::pair{"not-started", K::kNotStarted},   std::pair{"rank-exited", K::kRankExited},
                    std::pair{"rank-killed", K::kRankKilled},   std::pair{"out-of-memory", K::kOutOfMemory},
                    std::pair{"rank-stopped", K::kRankStopped}, std::pair{"rails-cut", K::kRailsCut},
                    std::pair{"group-lost", K::kGroupLost},     std::pair{"node-dead", K::kNodeDead},
                    std::pair{"channel-gone", K::kChannelGone}, std::pair{"supervisor-ended", K::kSupervisorEnded},
                    std::pair{"stopped", K::kStopped},          std::pair{"time-limit", K::kTimeLimit}};
}
std::string_view to_string(CauseKind kind);

struct JobCause {
  CauseKind kind = CauseKind::kRankExited;
  std::string node = {};         // where it happened; of kRailsCut one end
  std::optional<int> rank = {};  // who it happened to
  std::string rail = {};
  int exit_status = 1;  // what the command exits with
  Error error;          // the sentence for people, and what to do
};

struct RankOutput {
  std::string node;
  int rank = 0;
  OutputStream stream = OutputStream::kOut;
  std::string_view text;   // a line without its newline, or bytes as they come
  bool line_ended = true;  // false: the last line had no newline, or is longer than 1 MiB and goes on
};

// What happens while the job goes on: "rail B between spark-1 and spark-2 is cut: going on with rail A".
struct JobEvent {
  enum class Kind { kNotice, kRanksStarted, kReady, kRestart } kind = Kind::kNotice;
  std::string text;
  std::optional<int> rank = {};
};

// What Ctrl-C, SIGTERM and SIGHUP do.
enum class JobInterrupts {
  kEndTheJob,  // ends all ranks, then wait() throws
  kLeft,       // nothing: the caller takes them, and held them back (held_interrupts.h) before the job was made
};

enum class OutputForm {
  kLines,         // of every rank
  kFirstRankRaw,  // rank 0's standard output as the bytes that it is, all else in lines
};

struct JobSpec {
  std::string name = {};            // made of the program's where empty
  std::vector<JobNode> nodes = {};  // the first is the head's
  std::vector<std::string> argv = {};
  bool own_program = false;  // argv[0] is only a name: this very program is run, carried to nodes that lack it
  std::vector<Variable> environment = {};  // added to what docs/jobs.md lists
  std::optional<std::string> folder = {};  // of each node; the working folder of the head where a node has it
  JobPolicy policy = JobPolicy::kStop;
  int restarts_max = 3;  // within restart_window; one more ends the job
  Seconds restart_window{60};
  int restarts_total = 100;                // over the whole job, unless restarts_max is more
  std::optional<Seconds> time_limit = {};  // for the whole of it
  Seconds grace{1};                        // between SIGTERM and SIGKILL
  bool oversubscribe = false;              // more than four ranks for each core are let pass
  std::string oversubscribe_option = {};   // how the caller lets the user say so, for the hint
  JobInterrupts interrupts = JobInterrupts::kEndTheJob;
  OutputForm output_form = OutputForm::kLines;
  std::function<void(const RankOutput&)> on_output = {};
  std::function<void(const JobEvent&)> on_event = {};
  // Every second, of each node: its memory, and the interfaces of its rails.
  std::function<void(const std::string& node, const NodeState&)> on_node_state = {};
  std::function<void()> on_idle = {};  // all that has come was given: the moment to flush what was collected
  std::filesystem::path program = "/proc/self/exe";  // whose part the supervisors are
  // Nodes, by their names, that the command has reached already; the others the job reaches itself.
  std::vector<std::shared_ptr<fleet::Node>> reached = {};
};

struct JobOutcome {
  int exit_status = 0;                 // 0 where all ranks exited with 0
  std::optional<JobCause> cause = {};  // the first; nothing where all ended well
  int restarts = 0;
};

class JobLoop;

class Job {
 public:
  explicit Job(JobSpec spec);  // throws Error(kUsage, kInvalid) for what makes no sense
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();  // ends it

  const std::string& name() const;
  // Until all is over and all output was given to the hooks. What a hook throws ends the job and is thrown here.
  JobOutcome wait();
  void stop();  // ends all ranks; wait() then tells kStopped

 private:
  std::unique_ptr<JobLoop> loop_;
};

}  // namespace yoke::job
