// Which nodes are joined by which rails, from the cluster file. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/link/rail_socket.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

// One half of what joins two nodes.
struct PairRail {
  std::string name;  // "A", "B": by its place among the rails of this pair
  RailPlace a, b;
};

struct NodePair {
  int a = 0, b = 0;  // places in the cluster file
  std::vector<PairRail> rails;
};

struct PairChoice {
  std::optional<std::string> node;  // only pairs with this one
  std::optional<std::string> rail;  // only this rail
};

// The pairs to measure: all that are cabled, or behind a switch of four and more each node with the next, so that every
// port is measured both ways. Throws Error(kUsage, kInvalid) with a hint where there are none.
std::vector<NodePair> pairs_of(const spec::Cluster& cluster, const PairChoice& choice);

}  // namespace yoke::link
