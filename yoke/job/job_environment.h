// What a rank finds in its environment: yoke's own variables, and those by which programs made for torchrun and mpirun
// know their place. docs/jobs.md lists them.
#pragma once
#include <string>
#include <vector>

#include "yoke/job/job.h"

namespace yoke::job {

// Where rank 0 can be found by programs that look for a master: an address that all nodes reach, and a port that was
// free a moment ago.
struct Master {
  std::string address;
  int port = 0;
};
Master choose_master(const std::vector<JobNode>& nodes);

// For each rank of one node, in order; `first_rank` is that of its first.
std::vector<RankStart> rank_starts(const JobSpec& spec, std::size_t node, int first_rank, int size,
                                   const Master& master);

}  // namespace yoke::job
