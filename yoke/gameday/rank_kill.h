// The death of a rank, made on purpose. Prepared before the work that it disturbs begins: then it comes at once, on a
// busy machine too.
//
//   RankKill death(environment, scene);
//   phase_run.run(…, {.on_output = [&](pid_t command, std::string_view) { death.happen(command); }});
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "yoke/base/process.h"
#include "yoke/gameday/environment.h"
#include "yoke/gameday/phase_run.h"

namespace yoke::gameday {

class RankKill {
 public:
  RankKill(const Environment& environment, PhaseRun& phase_run);

  // Kills one rank of the engine that this process of ours started. In a lab, whose nodes run nothing else, it is that
  // of the last node; on a cluster the one on this machine.
  void happen(pid_t engine_owner);

 private:
  PhaseRun& phase_run_;
  std::string node_;                // of the lab
  std::optional<Process> waiting_;  // on that node, for a line
};

}  // namespace yoke::gameday
