// Starts the ranks of one piece of work, whatever they are: threads of this process, processes of a job, processes of
// mpirun, or this process as the rank that a launcher made it.
//
//   const auto ranks = Ranks::start({.task = {.kind = "bench", .content = to_json(task)},
//                                    .starter = RankStarter::kJob, .ranks = 2, .cluster = cluster,
//                                    .on_output = [&](std::string_view bytes) { reader.take(bytes); }});
//   ranks->wait();  // throws what ended them
//
// Ranks that are processes of their own run `yoke rank KIND` (rank_part.h) with the task in their environment. Ranks of
// this process call `here` instead. One thread makes and destroys Ranks; wait() may be called in another one, and the
// hooks are called there.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/job/job.h"
#include "yoke/rank/transport.h"
#include "yoke/rank/world.h"
#include "yoke/spec/cluster.h"

namespace yoke::rank {

enum class RankStarter { kThreads, kJob, kMpirun, kLauncher };

// What a person's choice of transport means for who starts the ranks.
RankStarter rank_starter(Transport transport, const std::optional<job::RankPlace>& place);

// How many ranks there are: `wanted`, else one for each node, else `alone` on this machine.
int rank_count(int wanted, const std::optional<spec::Cluster>& cluster, int alone);

struct RankTask {
  std::string kind;  // a row of the table of kinds (rank_part.h)
  Document content;
};

struct RanksSpec {
  std::string name = {};  // of the job: "engine" makes engine-1a2b3c
  RankTask task = {};     // of ranks that are processes
  RankStarter starter = RankStarter::kJob;
  int ranks = 1;
  std::optional<spec::Cluster> cluster = {};
  std::optional<job::RankPlace> place = {};  // of kLauncher: which rank this process is

  // Of ranks in this process. Rank 0, and the rank of a launcher, run in the thread that calls wait().
  std::function<void(World&)> here = {};
  WorldOptions world = {};

  // Of a job.
  job::JobPolicy policy = job::JobPolicy::kStop;
  int restarts_max = 3;
  job::JobInterrupts interrupts = job::JobInterrupts::kEndTheJob;
  bool oversubscribe = false;
  std::string oversubscribe_option = {};
  std::vector<std::shared_ptr<fleet::Node>> reached = {};  // nodes that the command has reached already: see JobSpec
  bool yields = false;                                     // of mpirun: see MpirunTask

  std::function<void(std::string_view bytes)> on_output = {};     // rank 0's standard output; else part of on_line
  std::function<void(const std::string& line)> on_line = {};      // all else; to standard error where it is empty
  std::function<void(const std::string& notice)> on_notice = {};  // what happens to ranks and rails of a job
  std::function<void(std::optional<int> rank)> on_restart = {};   // of a job, with the rank that was lost first
  std::function<void()> on_started = {};                          // a job's ranks run
  std::function<void(const std::string& node, const job::NodeState&)> on_node_state = {};  // of a job: see JobSpec
};

class Ranks {
 public:
  static std::unique_ptr<Ranks> start(RanksSpec spec);
  virtual ~Ranks() = default;  // ends a job

  // Returns when all ranks have ended well; else throws what ended the first. Call it once.
  virtual void wait() = 0;
  virtual void stop() {}  // ends the ranks of a job, from any thread; others cannot be ended from here
};

}  // namespace yoke::rank
