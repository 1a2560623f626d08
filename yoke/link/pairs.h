// Which nodes are joined by which halves, from the cluster file. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/link/half_socket.h"
#include "yoke/spec/cluster.h"

namespace yoke {

// One half of what joins two nodes.
struct PairHalf {
  std::string name;  // "A", "B": by its place among the halves of this pair
  HalfPlace a, b;
};

struct NodePair {
  int a = 0, b = 0;  // places in the cluster file
  std::vector<PairHalf> halves;
};

struct PairChoice {
  std::optional<std::string> node;  // only pairs with this one
  std::optional<std::string> half;  // only this half
};

// The pairs to measure: all that are cabled, or behind a switch of four and more each node with the next, so that every
// port is measured both ways. Throws Error(kUsage, kInvalid) with a hint where there are none.
std::vector<NodePair> pairs_of(const Cluster& cluster, const PairChoice& choice);

}  // namespace yoke
