// The jobs of Slurm that run on a node, by the processes that Slurm starts for each step: "slurmstepd: [12.0]". They
// are there with every way to track processes, and any user may see them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

class SlurmSteps {
 public:
  // One for each job, by its number: "slurm 12", with its steps. `now` is kept as the time at which a job was first
  // seen. A process is looked at once, unless its number comes again after a while.
  std::vector<JobSample> read(const FileTree& tree, const std::string& now);

 private:
  static constexpr int kLooksUntilForgotten = 60;  // five minutes

  std::map<std::string, bool> processes_;  // by number: whether it is Slurm's
  std::map<std::string, std::string> since_;
  int looks_ = 0;
};

}  // namespace yoke::watch
