#include <fmt/format.h>

#include <set>

#include "yoke/base/error.h"
#include "yoke/sync/sync.h"

namespace yoke::sync {
namespace {

// Pairs with `node`, seen from it. pairs_of leaves out most pairs behind a switch unless one node is asked for.
std::vector<Transfer> transfers_from(const spec::Cluster& cluster, int node, const std::optional<std::string>& rail) {
  std::vector<Transfer> transfers;
  const std::string& name = cluster.nodes[static_cast<std::size_t>(node)].name;
  for (link::NodePair& pair : link::pairs_of(cluster, {.node = name, .rail = rail})) {
    if (pair.b == node) {
      std::swap(pair.a, pair.b);
      for (link::PairRail& one : pair.rails) std::swap(one.a, one.b);
    }
    transfers.push_back({pair.a, pair.b, std::move(pair.rails)});
  }
  return transfers;
}

}  // namespace

std::vector<std::vector<Transfer>> plan_rounds(const spec::Cluster& cluster, int source,
                                               const std::optional<std::string>& rail) {
  std::vector<std::vector<Transfer>> rounds;
  std::set<int> have{source};
  while (have.size() < cluster.nodes.size()) {
    std::vector<Transfer> round;
    std::set<int> next = have;
    for (const int from : have) {
      for (Transfer& transfer : transfers_from(cluster, from, rail)) {
        if (next.insert(transfer.to).second) round.push_back(std::move(transfer));
      }
    }
    if (round.empty()) break;
    have = next;
    rounds.push_back(std::move(round));
  }
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    if (have.contains(static_cast<int>(i))) continue;
    throw Error(ErrorCode::kInvalid, fmt::format("no rail of the cluster file leads to '{}'", cluster.nodes[i].name),
                "'yoke link discover -o cluster.yaml --force' finds the rails; users and names of the file stay");
  }
  return rounds;
}

}  // namespace yoke::sync
