#include "yoke/link/pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/job/node_answer.h"

namespace yoke {
namespace {

HalfPlace place_of(const Half& half) { return {to_string(half.address.address), half.interface}; }

// Halves in one network are joined. Where several are (both halves in one subnet), place by place.
std::optional<NodePair> join(const Cluster& cluster, int a, int b) {
  const std::vector<Half>& ours = cluster.nodes[static_cast<std::size_t>(a)].halves;
  const std::vector<Half>& theirs = cluster.nodes[static_cast<std::size_t>(b)].halves;
  NodePair pair{.a = a, .b = b};
  std::vector<bool> taken(theirs.size(), false);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto fits = [&](std::size_t j) {
      return j < theirs.size() && !taken[j] && theirs[j].address.network() == ours[i].address.network();
    };
    std::size_t j = i;
    if (!fits(j)) {
      for (j = 0; j < theirs.size() && !fits(j);) ++j;
    }
    if (!fits(j)) continue;
    taken[j] = true;
    pair.halves.push_back({half_name(pair.halves.size()), place_of(ours[i]), place_of(theirs[j])});
  }
  return pair.halves.empty() ? std::nullopt : std::optional(pair);
}

void choose_half(std::vector<NodePair>& pairs, const std::string& half) {
  std::vector<std::string> names;
  for (NodePair& pair : pairs) {
    for (const PairHalf& one : pair.halves) {
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    }
    std::erase_if(pair.halves, [&](const PairHalf& one) { return one.name != half; });
  }
  std::erase_if(pairs, [](const NodePair& pair) { return pair.halves.empty(); });
  if (pairs.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("there is no half '{}'", printable(half, 20)),
                fmt::format("the halves are {}", fmt::join(names, ", ")));
  }
}

void check_node(const Cluster& cluster, const std::string& name) {
  std::vector<std::string> names;
  for (const ClusterNode& node : cluster.nodes) names.push_back(node.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("the cluster has no node '{}'", printable(name, 70)),
                suggest(name, names, "nodes"));
  }
}

}  // namespace

std::vector<NodePair> pairs_of(const Cluster& cluster, const PairChoice& choice) {
  const int count = static_cast<int>(cluster.nodes.size());
  if (count < 2) {
    throw Error(ErrorCode::kInvalid, fmt::format("cluster '{}' has one node: there is no link", cluster.name),
                "add the other nodes to the cluster file");
  }
  for (const ClusterNode& node : cluster.nodes) {
    if (node.halves.empty()) {
      throw Error(ErrorCode::kInvalid, fmt::format("the cluster file does not tell the halves of '{}'", node.name),
                  "add 'halves: [{ interface: enp1s0f0np0, address: 192.168.100.1/24 }, …]' to each node "
                  "(docs/cluster-file.md); 'ip -brief address' over there shows them");
    }
  }
  if (choice.node) check_node(cluster, *choice.node);
  std::vector<NodePair> pairs;
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      if (auto pair = join(cluster, a, b)) pairs.push_back(*std::move(pair));
    }
  }
  if (pairs.empty()) {
    throw Error(ErrorCode::kInvalid, "no two nodes have halves in one subnet",
                "the two ends of a half need addresses of one network, such as 192.168.100.1/24 and 192.168.100.2/24");
  }
  const bool all_joined = static_cast<int>(pairs.size()) == count * (count - 1) / 2;
  std::erase_if(pairs, [&](const NodePair& pair) {
    if (choice.node) {
      return cluster.nodes[static_cast<std::size_t>(pair.a)].name != *choice.node &&
             cluster.nodes[static_cast<std::size_t>(pair.b)].name != *choice.node;
    }
    return all_joined && count > 3 && pair.b - pair.a != 1 && pair.b - pair.a != count - 1;
  });
  if (choice.half) choose_half(pairs, *choice.half);
  return pairs;
}

}  // namespace yoke
