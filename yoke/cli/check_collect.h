// Gathers what the rules look at: from every node of a cluster at once, from this machine, or from captures.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/spec/survey.h"

namespace yoke {

struct CollectOptions {
  Seconds timeout{10};  // for reaching a node, and again for its answer
};

// A node that cannot be looked at has a failure instead of a machine: that is an answer, not an Error.
Survey collect_cluster(const Cluster& cluster, const CollectOptions& options);
Survey collect_here();
// Folders as `yoke probe --capture` writes them. With a cluster, each takes the place of the node with its host name.
Survey collect_captures(const std::vector<std::string>& folders, const std::optional<Cluster>& cluster);

// What is asked of each node: which peers its halves should reach, in a ring which far addresses, and which
// names it should resolve.
std::vector<SurveyedNode> questions_for(const Cluster& cluster);

}  // namespace yoke
