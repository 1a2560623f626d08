// The one owner of a job's state: a thread that reads what the channels bring (node_channel.h), asks the diagnosis what
// it means (diagnosis.h), and tells the nodes what to do. Used by job.cc only, whose wait() takes what is to be shown
// from the deliveries. Public calls are safe from any thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/job/deferred_signals.h"
#include "yoke/job/diagnosis.h"
#include "yoke/job/job.h"
#include "yoke/job/job_environment.h"
#include "yoke/job/job_record.h"
#include "yoke/job/node_channel.h"

namespace yoke::job {

// From the loop to the one that waits. Bounded by the credit that the nodes have: output is not sent without.
struct Delivery {
  enum class Kind { kOutput, kRankClosed, kEvent, kNodeState } kind = Kind::kEvent;
  int node = 0;
  OutputPiece piece = {};  // of kRankClosed only the rank
  JobEvent event = {};
  NodeState state = {};
};

class Deliveries {
 public:
  void push(Delivery delivery);
  void close();                                    // nothing more comes
  std::optional<Delivery> pop(Deadline deadline);  // nothing at the deadline, and at the end
  bool at_end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Delivery> queue_;
  bool closed_ = false;
};

class JobLoop {
 public:
  explicit JobLoop(JobSpec spec);
  JobLoop(const JobLoop&) = delete;
  JobLoop& operator=(const JobLoop&) = delete;
  ~JobLoop();

  const JobSpec& spec() const { return spec_; }
  const std::string& node_name(int node) const { return spec_.nodes[static_cast<std::size_t>(node)].node.name; }
  Deliveries& deliveries() { return deliveries_; }
  void stop();
  void note_shown();                                 // the deliveries are at their end, or nobody takes them any more
  void return_credit(int node, std::int64_t bytes);  // so much output of the node was shown

  // Once the deliveries are at their end.
  const JobOutcome& outcome() const { return outcome_; }
  std::optional<int> interrupt() const { return interrupt_; }

 private:
  enum class Phase { kStarting, kRunning, kEnding, kDone };
  struct Node {
    std::unique_ptr<NodeChannel> channel;
    int first_rank = 0;
    int openings = 0;
    std::optional<Hello> hello;
    std::optional<Error> refusal;  // it cannot be used
    bool lost = false;             // its channel was
    bool gone = false;             // nothing is left there, it says
    bool finished = false;
    bool reopening = false;
  };
  struct Rank {
    int node = 0;
    bool started = false;
    bool restarting = false;  // until it is told to have started, what comes is about the one before
    bool stopped = false;
    bool closed = false;
    bool in_group = false;
    std::optional<RankEnded> ended;
    std::optional<Join> join;  // for the next membership

    bool is_missing() const { return stopped || (ended && ended->exit_status != 0); }
    // A supervisor ends ranks unasked only when it ends itself, which it tells after them.
    bool is_over() const { return ended && !ended->ended_by_us && closed && !restarting; }
  };

  void run();
  void open_channel(std::size_t node);
  void handle(const ChannelEvent& event);
  void take(std::size_t node, const Message& message);
  void take_from_rank(std::size_t node, const Message& message);
  void lose_node(std::size_t node, CauseKind kind, const Error& error);
  void greet(std::size_t node, const Hello& hello);
  void send_start(std::size_t node);
  void fail(const Error& error);
  void poll_once();
  void check_interrupts();
  void check_time_limit();
  void send_credit();
  void wait_until_shown(std::optional<int> interrupt);
  void begin_running();
  void take_join(const Join& join);
  void send_membership();
  std::optional<JobCause> find_useless_wait() const;
  std::optional<JobCause> find_ended_allocation(const JobCause& cause) const;
  void handle_cause(const JobCause& cause);
  bool may_restart(const JobCause& cause);
  void restart(const JobCause& cause);
  void begin_end(std::optional<JobCause> cause);
  void take_end();
  void notify_all(const Message& message);
  void notice(JobEvent event);
  Rank* find_rank(std::size_t node, int number);
  Error refusals() const;

  JobSpec spec_;
  Inbox inbox_;  // before the channels, which write to it
  Deliveries deliveries_;
  const std::string id_;     // tags all processes of the job
  const std::string token_;  // the secret of its ranks
  Master master_;
  std::shared_ptr<const remote::ProgramFile> program_;  // of nodes that the job reaches itself
  std::vector<Node> nodes_;
  std::vector<Rank> ranks_;
  std::optional<Diagnosis> diagnosis_;
  Phase phase_ = Phase::kStarting;
  const Deadline time_limit_;
  int epoch_ = 0;
  int reports_from_ = 0;  // path reports of older epochs are about what is over
  std::vector<Instant> restarts_;
  std::optional<Deadline> end_deadline_;
  int interrupts_taken_ = 0;
  std::optional<int> interrupt_;
  JobOutcome outcome_;
  std::atomic<bool> stop_wanted_{false};
  std::atomic<bool> shown_{false};
  std::mutex credit_mutex_;
  std::vector<std::int64_t> credit_;  // by node: shown, and not yet told

  std::optional<DeferredSignals> held_;  // none where interrupts are left to the caller
  std::optional<JobRecordFile> record_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace yoke::job
