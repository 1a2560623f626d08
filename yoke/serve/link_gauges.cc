#include "yoke/serve/link_gauges.h"

#include "yoke/job/node_answer.h"

namespace yoke::serve {

std::optional<NodeNow> node_now(const RequestHub& hub, std::size_t place, const std::string& name,
                                const FileTree& machine) {
  auto known = hub.node_states().of(name, real_clock().now());
  if (known || place > 0) return known;
  std::vector<std::string> interfaces;
  if (const auto& cluster = hub.spec().cluster) {
    for (const spec::Rail& rail : cluster->nodes.front().rails) interfaces.push_back(rail.interface);
  }
  return NodeNow{.state = job::read_node_state(machine, interfaces)};
}

std::vector<LinkGauge> link_gauges(const spec::ClusterNode& node, const job::NodeState& state) {
  std::vector<LinkGauge> links;
  for (std::size_t i = 0; i < node.rails.size() && i < state.interfaces.size(); ++i) {
    const job::InterfaceState& interface = state.interfaces[i];
    links.push_back({.node = node.name,
                     .rail = job::rail_name(i),
                     .interface = interface.name,
                     .is_up = interface.is_up,
                     .sent_bytes = interface.sent_bytes.value_or(0),
                     .received_bytes = interface.received_bytes.value_or(0)});
  }
  return links;
}

std::vector<RankGauge> rank_gauges(const HubStatus& status) {
  std::vector<RankGauge> ranks;
  for (std::size_t i = 0; status.ready && i < status.ranks.size(); ++i) {
    const engine::EngineReady& ready = *status.ready;
    ranks.push_back({.rank = static_cast<int>(i),
                     .node = i < ready.nodes.size() ? ready.nodes[i] : "",
                     .is_up = status.ranks[i].is_up,
                     .restarts = status.ranks[i].restarts,
                     .cache_bytes = static_cast<std::int64_t>(ready.cache_each.value)});
    if (i < ready.weights_each.size()) {
      ranks.back().weights_bytes = static_cast<std::int64_t>(ready.weights_each[i].value);
    }
  }
  return ranks;
}

}  // namespace yoke::serve
