// Whether Slurm can run a job on the nodes of a launch, before it is submitted: a job for a node that is down waits in
// the queue without a word.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/spec/finding.h"

namespace yoke::launch {

// Pure. `sinfo` is what `sinfo -N -h -o '%N|%T|%E'` prints.
std::vector<spec::Finding> evaluate_slurm_nodes(const std::vector<std::string>& nodes, std::string_view sinfo);
// Asks Slurm here. Error(kUnavailable) where there is none, or its controller does not answer.
std::vector<spec::Finding> slurm_findings(const std::vector<std::string>& nodes);

}  // namespace yoke::launch
