// The rails of the nodes of one cluster: what has passed over them, and whether they carry. Ranks with the node that
// each runs on. For /metrics and /v1/cluster.
#pragma once
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/serve/request_hub.h"
#include "yoke/serve/serve_metrics.h"

namespace yoke::serve {

// What is known now of node `place` of the hub's cluster. The head is this machine, and `machine` is asked where its
// supervisor has said nothing; of other nodes nothing is known then. Without a cluster the head is `name`.
std::optional<NodeNow> node_now(const RequestHub& hub, std::size_t place, const std::string& name,
                                const FileTree& machine);

// An interface that is not there counts as down.
std::vector<LinkGauge> link_gauges(const spec::ClusterNode& node, const job::NodeState& state);

std::vector<RankGauge> rank_gauges(const HubStatus& status);

}  // namespace yoke::serve
