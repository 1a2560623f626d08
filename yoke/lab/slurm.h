// Slurm in a lab, as `yoke lab up --with slurm` starts it: munged on every node, slurmctld on the head node, slurmd on
// every node, each in its node's namespaces, so that they end with it. slurm_files() is pure and says what they are
// told; start_slurm() writes that into running nodes and waits until Slurm calls all of them idle.
//
// A node that was powered off comes back without Slurm.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/lab/layout.h"

namespace yoke::lab {

// What this machine brings to a node's configuration.
struct SlurmHost {
  int cpus = 1;
  std::string version;  // as `slurmd -V` has it: "slurm-wlm 22.05.8"
  enum class Pmix { kMissing, kThere } pmix = Pmix::kMissing;
};

struct SlurmFile {
  std::string path;  // in every node
  std::string content;
};

// The same files for all nodes.
std::vector<SlurmFile> slurm_files(const LabLayout& layout, const SlurmHost& host);

// What `sinfo -h -N -o "%N %T"` says of the nodes that are not idle, one sentence each: "spark-2 is 'down*'". Empty
// where all are.
std::vector<std::string> find_slurm_unready(const LabLayout& layout, std::string_view sinfo);

// Throws Error(kNotFound) with the packages to install where Slurm or munge is missing.
void require_slurm();

// Throws where a daemon does not start, or a node is not idle in time; the lab is then left as it is.
void start_slurm(const LabLayout& layout);

}  // namespace yoke::lab
