// What other programs take of the nodes' processors while the nodes work for us, so that a slow all-reduce on a busy
// machine is not taken for a fault. Every node is asked before and after: none of them counts for another.
//
//   LoadWatch watch(fleet);
//   … ranks on all nodes …
//   const double taken = watch.taken();
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/agent/action.h"
#include "yoke/base/units.h"
#include "yoke/fleet/fleet.h"

namespace yoke::survey {

// Of one machine, since it started.
struct ProcessorSample {
  Seconds at;         // by a clock of that machine
  Seconds busy;       // all programs together
  Seconds stolen;     // by the host of a virtual machine
  Seconds throttled;  // of the agent's cgroup
  Seconds own;        // of the agent and all that descend from it: a job's supervisor and its ranks
  int cores = 1;
  std::string machine;  // nodes of a lab have the same
};

// The largest share of a machine's processors that we could not have. Both are in the same order of nodes.
double taken_between(std::span<const ProcessorSample> before, std::span<const ProcessorSample> after);

class LoadWatch {
 public:
  explicit LoadWatch(fleet::Fleet& fleet);  // whose nodes are reached
  double taken();                           // since it was made; of the nodes that answer

 private:
  std::vector<std::optional<ProcessorSample>> sample();

  fleet::Fleet& fleet_;
  std::vector<std::optional<ProcessorSample>> before_;
};

ProcessorSample sample_processors();
// The agent's action "processor-times".
Document answer_processor_times(const Document& question, agent::AgentContext& context);

}  // namespace yoke::survey
