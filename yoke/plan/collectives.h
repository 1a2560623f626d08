// How long ranks take to sum a buffer, inside a machine and between machines.
#pragma once
#include "yoke/plan/constants.h"
#include "yoke/plan/machine.h"

namespace yoke::plan {

// Ranks of one group: so many GPUs on each of so many nodes.
struct Group {
  int nodes = 1;
  int per_node = 1;
  int ranks() const { return nodes * per_node; }
};
// Filled node by node: 16 ranks on machines of 8 GPUs are 2 x 8.
Group group_of(const Machines& machines, int ranks);

// One all-reduce of so many bytes as an engine calls it: inside a CUDA graph where there is one.
double all_reduce_seconds(const Machines& machines, const Group& group, double bytes, const Constants& constants);
// Bus bandwidth of a large all-reduce or all-gather between nodes, bytes/s: algorithm bandwidth times 2(n-1)/n for an
// all-reduce, (n-1)/n for an all-gather.
double bus_rate(const Machines& machines, const Constants& constants);
// All-to-all where each rank sends `bytes` in all.
double all_to_all_seconds(const Machines& machines, const Group& group, double bytes, const Constants& constants);
// All-gather or reduce-scatter of `bytes` in all over every rank of the group, bandwidth only.
double gather_seconds(const Machines& machines, const Group& group, double bytes, const Constants& constants);

}  // namespace yoke::plan
