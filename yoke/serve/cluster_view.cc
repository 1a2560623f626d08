#include "yoke/serve/cluster_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/serve/link_gauges.h"

namespace yoke::serve {
namespace {

Document texts(const std::vector<std::string>& all) {
  Document list = Document::list();
  for (const std::string& one : all) list.items.push_back(Document::string(one));
  return list;
}

// "MemAvailable:   1234 kB" of /proc/meminfo, in bytes.
std::optional<std::int64_t> memory_line(const FileTree& machine, std::string_view key) {
  const auto text = machine.read("/proc/meminfo");
  for (const std::string& line : split(text.value_or(""), '\n')) {
    if (!line.starts_with(key)) continue;
    std::int64_t value = 0;
    const std::string_view digits = trim(std::string_view(line).substr(key.size()));
    const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure == std::errc{}) return value * 1024;
  }
  return std::nullopt;
}

void add_number(Document& map, const char* key, std::optional<std::int64_t> value) {
  if (value) map.add(key, Document::number(*value));
}

// `gauges`: of the head's rails; of other nodes none.
Document rails_json(const spec::ClusterNode& node, const std::vector<LinkGauge>& gauges) {
  Document list = Document::list();
  for (std::size_t i = 0; i < node.rails.size(); ++i) {
    const spec::Rail& rail = node.rails[i];
    Document row = Document::map({{"name", Document::string(rail_name(i))},
                                  {"interface", Document::string(rail.interface)},
                                  {"address", Document::string(to_string(rail.address))}});
    if (i < gauges.size()) {
      row.add("up", Document::boolean(gauges[i].is_up));
      row.add("sent_bytes", Document::number(gauges[i].sent_bytes));
      row.add("received_bytes", Document::number(gauges[i].received_bytes));
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
    if (i == 0) {  // the head, where this server is
      add_number(node, "memory_bytes", memory_line(machine, "MemTotal:"));
      add_number(node, "memory_available_bytes", memory_line(machine, "MemAvailable:"));
    }
    const bool has_own = cluster && i == 0;
    const std::vector<LinkGauge> own = has_own ? link_gauges(cluster->nodes[i], machine) : std::vector<LinkGauge>();
    node.add("rails", cluster ? rails_json(cluster->nodes[i], own) : Document::list());
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
