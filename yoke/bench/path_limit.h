// What a collective can reach over a cluster: the rails, what a machine's NICs carry together, and the path that the
// data takes. Pure.
//
// A Spark has two ports with two rails each, but its NIC carries two rails' worth however it is cabled. Around a ring
// what goes to a node that is no neighbour passes through others, whose NICs carry it too. So the limit is found by
// putting the messages of one operation on rails and NICs: the busiest of them decides.
#pragma once
#include <optional>

#include "yoke/bench/collective_options.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/cluster.h"

namespace yoke::bench {

struct PathQuestion {
  comm::CollectiveKind kind = comm::CollectiveKind::kAllReduce;
  int ranks = 0;  // in all, spread over the nodes as a job does
  rank::Transport transport = rank::Transport::kAuto;
};

// Rates are the cluster file's, else the catalogue's. Nothing where neither says (an unshaped lab), where all ranks are
// on one node, and where a node has no way to another.
std::optional<LinkLimit> limit_of(const spec::Cluster& cluster, const PathQuestion& question);

}  // namespace yoke::bench
