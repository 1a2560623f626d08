#include "yoke/fleet/fleet.h"

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
