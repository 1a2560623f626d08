// Inside a job of Slurm its nodes are the cluster: SLURM_JOB_NODELIST names them.
#pragma once
#include <optional>
#include <string>

#include "yoke/spec/cluster.h"

namespace yoke::launch {

struct Allocation {
  std::string job;  // its number
  std::vector<std::string> nodes;
};

// Nothing outside a job, and in a step of several tasks: there srun has started one of us for each rank.
std::optional<Allocation> find_allocation();

struct AllocatedCluster {
  spec::Cluster cluster;
  std::string note;  // what to say first; empty: nothing
};
// The allocation's nodes: as the cluster file lists them where it has them all, else by their names alone, and the note
// says why the file is not used.
AllocatedCluster cluster_of(const Allocation& allocation, const std::optional<spec::Cluster>& file);

}  // namespace yoke::launch
