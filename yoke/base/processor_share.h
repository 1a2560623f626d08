// How much processor this process may use: the processors it may run on, and what control groups allow of them. A
// container with `cpu.max` of "50000 100000" has a share of 0.5: half a processor.
//
//   const int threads = threads_for(processor_share(DiskTree("/")));
#pragma once
#include "yoke/base/file_tree.h"

namespace yoke {

// The processors that the scheduler may put this process on.
int allowed_processors();

// The least of allowed_processors() and the quotas of all control groups from ours up to the root (version 2: cpu.max;
// version 1: cpu.cfs_quota_us by cpu.cfs_period_us). Above 0.
double processor_share(const FileTree& tree);
// The quota of the control groups alone: `processors` where none limits it.
double quota_share(const FileTree& tree, double processors);

// Whole threads that a share feeds; at least one. A thread that gets less than a processor must not spin: it would use
// up its quota and then stand still until the next period.
constexpr int threads_for(double share) { return share < 1 ? 1 : static_cast<int>(share); }

}  // namespace yoke
