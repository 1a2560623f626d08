// What the ranks of one node have in common: the shared region, made by the lowest of them, and each other's bells.
// Both are handed over by the Unix sockets between them.
#pragma once
#include <memory>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/comm/direct/assembly.h"
#include "yoke/comm/direct/health.h"
#include "yoke/comm/direct/region.h"

namespace yoke::comm::direct {

struct NodeMemory {
  std::vector<int> ranks;          // of this node, ascending
  std::unique_ptr<Region> region;  // null for a rank that is alone
  std::vector<Wakeup> wakeups;     // as `ranks`; the own one is a copy
  int place_of(int rank) const;    // in `ranks`
};

NodeMemory share_memory(const Health& health, const std::vector<PeerConnections>& peers, Deadline deadline);

}  // namespace yoke::comm::direct
