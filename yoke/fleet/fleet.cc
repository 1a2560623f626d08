#include "yoke/fleet/fleet.h"

#include <fmt/format.h>

namespace yoke {

Fleet::Fleet(const std::vector<ClusterNode>& nodes, const NodeOptions& options) {
  for (const ClusterNode& node : nodes) {
    nodes_.push_back(std::make_shared<Node>(node, static_cast<int>(nodes_.size()), options));
  }
}

Fleet::Fleet(const std::vector<ClusterNode>& nodes, const std::vector<int>& places, const NodeOptions& options) {
  for (const int place : places) {
    nodes_.push_back(std::make_shared<Node>(nodes.at(static_cast<std::size_t>(place)), place, options));
  }
}

Node& Fleet::at_place(int place) {
  for (const auto& node : nodes_) {
    if (node->index() == place) return *node;
  }
  throw Error(ErrorCode::kInternal, fmt::format("node {} is not part of this", place));
}

void Fleet::reach_all() {
  all_or_throw(each("", [](Node& node) {
    node.reach();
    return true;
  }));
}

Fleet::~Fleet() {
  for (const auto& node : nodes_) node->begin_end();
}

}  // namespace yoke
