// The rails of one cluster as this machine sees them: what has passed over its own ends, and whether they carry. Ranks
// with the node that each runs on. For /metrics and /v1/cluster.
#pragma once
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/serve/request_hub.h"
#include "yoke/serve/serve_metrics.h"

namespace yoke::serve {

// A rail's name is its place in the cluster file: A, B, …
std::string rail_name(std::size_t place);

// Of the cluster's head, which is this machine. An interface that is not there counts as down.
std::vector<LinkGauge> link_gauges(const spec::ClusterNode& head, const FileTree& machine);

std::vector<RankGauge> rank_gauges(const HubStatus& status);

}  // namespace yoke::serve
