#include "yoke/link/pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/job/node_answer.h"

namespace yoke::link {
namespace {

RailPlace place_of(const spec::Rail& rail) { return {to_string(rail.address.address), rail.interface}; }

// Rails in one network are joined. Where several are (both rails in one subnet), place by place.
std::optional<NodePair> join(const spec::Cluster& cluster, int a, int b) {
  const std::vector<spec::Rail>& ours = cluster.nodes[static_cast<std::size_t>(a)].rails;
  const std::vector<spec::Rail>& theirs = cluster.nodes[static_cast<std::size_t>(b)].rails;
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
    pair.rails.push_back({job::rail_name(pair.rails.size()), place_of(ours[i]), place_of(theirs[j])});
  }
  return pair.rails.empty() ? std::nullopt : std::optional(pair);
}

void choose_rail(std::vector<NodePair>& pairs, const std::string& rail) {
  std::vector<std::string> names;
  for (NodePair& pair : pairs) {
    for (const PairRail& one : pair.rails) {
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    }
    std::erase_if(pair.rails, [&](const PairRail& one) { return one.name != rail; });
  }
  std::erase_if(pairs, [](const NodePair& pair) { return pair.rails.empty(); });
  if (pairs.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("there is no rail '{}'", printable(rail, 20)),
                fmt::format("the rails are {}", fmt::join(names, ", ")));
  }
}

void check_node(const spec::Cluster& cluster, const std::string& name) {
  std::vector<std::string> names;
  for (const spec::ClusterNode& node : cluster.nodes) names.push_back(node.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("the cluster has no node '{}'", printable(name, 70)),
                suggest(name, names, "nodes"));
  }
}

}  // namespace

std::vector<NodePair> pairs_of(const spec::Cluster& cluster, const PairChoice& choice) {
  const int count = static_cast<int>(cluster.nodes.size());
  if (count < 2) {
    throw Error(ErrorCode::kInvalid, fmt::format("cluster '{}' has one node: there is no link", cluster.name),
                "add the other nodes to the cluster file");
  }
  for (const spec::ClusterNode& node : cluster.nodes) {
    if (node.rails.empty()) {
      throw Error(ErrorCode::kInvalid, fmt::format("the cluster file lists no rails of '{}'", node.name),
                  "'yoke link discover -o cluster.yaml --force' finds them; users and names of the file stay");
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
    throw Error(ErrorCode::kInvalid, "no two nodes have rails in one subnet",
                "the two ends of a rail need addresses of one network, such as 192.168.100.1/24 and 192.168.100.2/24");
  }
  const bool is_mesh = cluster.fabric && cluster.fabric->topology == spec::Topology::kMesh;
  const bool behind_switch = !is_mesh && static_cast<int>(pairs.size()) == count * (count - 1) / 2;
  std::erase_if(pairs, [&](const NodePair& pair) {
    if (choice.node) {
      return cluster.nodes[static_cast<std::size_t>(pair.a)].name != *choice.node &&
             cluster.nodes[static_cast<std::size_t>(pair.b)].name != *choice.node;
    }
    return behind_switch && count > 3 && pair.b - pair.a != 1 && pair.b - pair.a != count - 1;
  });
  if (choice.rail) choose_rail(pairs, *choice.rail);
  return pairs;
}

}  // namespace yoke::link
