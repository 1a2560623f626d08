#include "yoke/serve/cluster_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "yoke/job/node_answer.h"
#include "yoke/serve/link_gauges.h"

namespace yoke::serve {
namespace {

Document texts(const std::vector<std::string>& all) {
  Document list = Document::list();
  for (const std::string& one : all) list.items.push_back(Document::string(one));
  return list;
}

void add_number(Document& map, const char* key, std::optional<std::int64_t> value) {
  if (value) map.add(key, Document::number(*value));
}

Document rails_json(const spec::ClusterNode& node, const std::optional<NodeNow>& now) {
  Document list = Document::list();
  for (std::size_t i = 0; i < node.rails.size(); ++i) {
    const spec::Rail& rail = node.rails[i];
    Document row = Document::map({{"name", Document::string(job::rail_name(i))},
                                  {"interface", Document::string(rail.interface)},
                                  {"address", Document::string(to_string(rail.address))}});
    if (now && i < now->state.interfaces.size()) {
      const job::InterfaceState& state = now->state.interfaces[i];
      row.add("up", Document::boolean(state.is_up));
      add_number(row, "sent_bytes", state.sent_bytes);
      add_number(row, "received_bytes", state.received_bytes);
    }
    if (now && i < now->rates.size() && now->rates[i]) {
      row.add("sent_bytes_per_second", Document::number(now->rates[i]->sent));
      row.add("received_bytes_per_second", Document::number(now->rates[i]->received));
    }
    list.items.push_back(std::move(row));
  }
  return list;
}

void add_ranks(Document& node, const std::string& name, bool is_only, const std::vector<RankGauge>& all) {
  Document ranks = Document::list();
  for (const RankGauge& rank : all) {
    if (rank.node != name && !is_only) continue;
    ranks.items.push_back(Document::map({{"rank", Document::number(std::int64_t{rank.rank})},
                                         {"up", Document::boolean(rank.is_up)},
                                         {"restarts", Document::number(static_cast<std::int64_t>(rank.restarts))},
                                         {"weights_bytes", Document::number(rank.weights_bytes)},
                                         {"cache_bytes", Document::number(rank.cache_bytes)}}));
  }
  node.add("ranks", std::move(ranks));
}

Document nodes_json(const RequestHub& hub, const HubStatus& status, const FileTree& machine) {
  Document nodes = Document::list();
  const auto& cluster = hub.spec().cluster;
  const std::size_t count = cluster ? cluster->nodes.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    const std::string node_name = cluster ? cluster->nodes[i].name : std::string(name.data());
    Document node = Document::map({{"name", Document::string(node_name)}});
    if (cluster) node.add("address", Document::string(cluster->nodes[i].address));
    const std::optional<NodeNow> now = node_now(hub, i, node_name, machine);
    if (now) {
      add_number(node, "memory_bytes", now->state.memory_bytes);
      add_number(node, "memory_available_bytes", now->state.memory_available_bytes);
    }
    node.add("rails", cluster ? rails_json(cluster->nodes[i], now) : Document::list());
    if (status.ready) add_ranks(node, node_name, count == 1, rank_gauges(status));
    nodes.items.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Document cluster_view(RequestHub& hub, const std::string& model, const FileTree& machine) {
  const HubStatus status = hub.status();
  const auto& cluster = hub.spec().cluster;
  Document view = Document::map({{"model", Document::string(model)}});
  for (const auto& [name, value] : enum_names(EngineState{})) {
    if (value == status.state) view.add("state", Document::string(name));
  }
  if (!status.why.empty()) view.add("why", Document::string(status.why));
  if (cluster) view.add("cluster", Document::string(cluster->name));
  if (cluster && cluster->fabric) {
    view.add("topology", Document::string(std::string(spec::to_string(cluster->fabric->topology))));
    if (cluster->fabric->rail_rate) {
      view.add("rail_rate", Document::number(static_cast<double>(cluster->fabric->rail_rate->value)));
    }
  }
  view.add("nodes", nodes_json(hub, status, machine));
  if (status.ready) {
    view.add("engine", Document::map({{"ranks", Document::number(std::int64_t{status.ready->ranks})},
                                      {"transport", Document::string(status.ready->transport)},
                                      {"backend", Document::string(status.ready->backend)},
                                      {"context", Document::number(status.ready->context_max)},
                                      {"cache_tokens", Document::number(status.ready->cache_tokens)}}));
  }
  view.add("running", Document::number(status.running));
  view.add("waiting", Document::number(status.waiting));
  view.add("tokens_held", Document::number(status.tokens_held));
  view.add("tokens_per_second", Document::number(hub.metrics().tokens_per_second(real_clock().now())));
  view.add("recoveries", Document::number(static_cast<std::int64_t>(hub.metrics().recoveries())));
  view.add("engine_starts", Document::number(static_cast<std::int64_t>(hub.metrics().engine_starts())));
  view.add("notices", texts(status.notices));
  return view;
}

}  // namespace yoke::serve
