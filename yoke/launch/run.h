// A launch as jobs: each start of the engine is one job over all nodes, which ends as a whole. The engines know no
// rejoin: after a loss everything is stopped, then started again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/job/job.h"
#include "yoke/launch/launch_plan.h"
#include "yoke/launch/through.h"

namespace yoke::launch {

struct StartOptions {
  Through through = Through::kSsh;  // or kDocker, kApptainer
  Bytes floor{0};
  Bytes limit{0};  // of a control group around the engine, or of its container of Docker; 0: none
  std::string folder;
};

// The job of one start: on every node that has a process, under its guard. `nodes` are the cluster's, in the plan's
// order.
job::JobSpec job_of(const LaunchPlan& plan, const std::vector<spec::ClusterNode>& nodes, const StartOptions& options);
// What the guard of a node is started with.
std::vector<std::string> guard_argv(const LaunchPlan& plan, std::size_t node, const StartOptions& options);

// Whether and when to start again. Pure: it gets what happened.
struct RestartRule {
  int restarts_max = 4;
  Seconds first_pause{30};
  Seconds healthy_after{600};  // so long without a failure forgets earlier ones
};
struct AttemptEnd {
  job::CauseKind kind = job::CauseKind::kRankExited;
  Seconds lasted{0};
  bool was_ready = false;
};
// Whether it ended so soon and without a token that the next start would too: a wrong option, a missing program.
bool never_worked(const AttemptEnd& end);

class Restarts {
 public:
  explicit Restarts(RestartRule rule) : rule_(rule) {}
  // How long to wait before the next start; nothing: give up.
  std::optional<Seconds> after(const AttemptEnd& end);
  int used() const { return used_; }

 private:
  RestartRule rule_;
  int used_ = 0;
};

}  // namespace yoke::launch
