// Does a machine answer at all, by any of its addresses? Asked when the channel to its supervisor was lost.
#pragma once
#include <string>

#include "yoke/base/clock.h"
#include "yoke/spec/cluster.h"

namespace yoke::job {

struct NodeAnswer {
  bool answers = false;
  std::string where = {};  // "at 10.77.0.2", "on rail A"; of no answer all that was tried
};

// Tries to connect to the ssh port at the node's address and on its rails, all at once. A refusal is an answer too,
// but for a loopback address, which is this machine's.
NodeAnswer ask_node(const spec::ClusterNode& node, Deadline deadline);

// "A", "B", …: how the rails of a node are called, by their place in the cluster file.
std::string rail_name(std::size_t index);

}  // namespace yoke::job
