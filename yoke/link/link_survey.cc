#include "yoke/link/link_survey.h"

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke::link {
namespace {

std::string interface_name(const RailFacts& facts) { return facts.interface ? facts.interface->name : ""; }

void set_delivery(spec::RailMeasurement& way, const RailLatency& latency) {
  for (const PingResult& row : latency.rows) way.latency = std::min(way.latency.value_or(row.min), row.min);
  for (const SentMessages& sent : latency.sent) {
    if (sent.from != way.from) continue;
    way.messages = sent.count;
    way.resent = sent.resent;
  }
}

// One half of a pair in one direction.
spec::RailMeasurement way_of(const PairResult& pair, const PairRailFacts& rail, const std::string& from) {
  const bool forward = from == pair.a;
  spec::RailMeasurement way{.from = from,
                            .to = forward ? pair.b : pair.a,
                            .from_interface = interface_name(forward ? rail.a : rail.b),
                            .to_interface = interface_name(forward ? rail.b : rail.a),
                            .transport = pair.transport};
  for (const LinkPhase& phase : pair.phases) {
    for (const RailRate& rate : phase.rates) {
      if (rate.rail != rail.name || rate.from != from) continue;
      way.set_rate(to_document(phase.kind).text, rate.rate, rate.again);
      for (const NodeLoad& load : phase.loads) way.taken = std::max(way.taken, load.taken);
    }
  }
  for (const RailLatency& latency : pair.latencies) {
    if (latency.rail == rail.name) set_delivery(way, latency);
  }
  for (const RailFailure& failure : pair.failures) {
    if (failure.rail == rail.name) way.failure = failure.message;
  }
  return way;
}

spec::NetworkInterface interface_of(const LinkInterface& link, const std::string& rail) {
  spec::NetworkInterface interface { .name = link.name, .kind = spec::InterfaceKind::kEthernet, .mtu = link.mtu };
  interface.up = link.up;
  interface.carrier = link.carrier;
  interface.rail = rail;
  for (const std::string& text : link.ipv4) {
    if (const auto address = parse_ipv4_prefix(text)) interface.addresses.push_back(*address);
  }
  return interface;
}

// What the file neither lists nor marks as unused.
bool is_omitted(const CabledRail& rail, const spec::ClusterNode& file) {
  const auto names_it = [&](const auto& one) { return one.interface == rail.interface; };
  return std::none_of(file.rails.begin(), file.rails.end(), names_it) &&
         std::none_of(file.unused.begin(), file.unused.end(), names_it);
}

spec::NetworkInterface interface_of(const CabledRail& rail) {
  spec::NetworkInterface interface { .name = rail.interface, .kind = spec::InterfaceKind::kEthernet };
  interface.up = interface.carrier = true;
  interface.port = rail.port;
  interface.rail = rail.rail;
  return interface;
}

// A node as the measurement saw it, and its part of the cluster file.
struct SeenNode {
  spec::SurveyedNode node;
  spec::ClusterNode place;

  void add_omitted(const std::vector<CabledRail>& rails, const spec::ClusterNode& file) {
    for (const CabledRail& rail : rails) {
      const bool known = spec::find_interface(*node.machine, rail.interface);
      if (!known && is_omitted(rail, file)) node.machine->interfaces.push_back(interface_of(rail));
    }
  }

  void add(const RailPlace& own, const RailPlace& peer, const std::string& peer_name, const RailFacts& facts,
           const std::string& rail, const spec::ClusterNode& file) {
    const auto known = std::find_if(place.rails.begin(), place.rails.end(),
                                    [&](const spec::Rail& one) { return one.interface == own.interface; });
    if (known == place.rails.end()) {
      for (const spec::Rail& one : file.rails) {
        if (one.interface == own.interface) place.rails.push_back(one);
      }
      if (facts.interface) node.machine->interfaces.push_back(interface_of(*facts.interface, rail));
    }
    const auto peer_address = parse_ipv4(peer.address);
    if (!facts.interface || !peer_address) return;
    spec::PathProbe path{.interface = own.interface, .peer = peer_name, .peer_address = *peer_address};
    path.routed = facts.route.has_value();
    if (facts.route) path.routes = {*facts.route};
    node.paths.push_back(std::move(path));
  }
};

}  // namespace

spec::Measurement measurement_of(const LinkTestResult& result) {
  spec::Measurement measurement;
  if (result.expected) {
    measurement.expected = result.expected->rail_rate;
    measurement.expected_source = result.expected->source;
  }
  for (const PairResult& pair : result.pairs) {
    for (const PairRailFacts& rail : pair.rails) {
      for (const std::string& from : {pair.a, pair.b}) measurement.rails.push_back(way_of(pair, rail, from));
    }
    for (const CounterChange& counter : pair.counters) {
      measurement.counters.push_back({counter.node, counter.interface, counter.name, counter.change});
    }
    if (measurement.transport_reason.empty()) measurement.transport_reason = pair.transport_reason;
    auto& known = measurement.transports;
    if (std::find(known.begin(), known.end(), pair.transport) == known.end()) known.push_back(pair.transport);
  }
  if (const auto& reduce = result.all_reduce) {
    measurement.all_reduce = spec::AllReduceMeasurement{.ranks = reduce->ranks,
                                                        .transport = reduce->transport,
                                                        .small_time = reduce->small_time,
                                                        .large_size = reduce->large_size,
                                                        .large_bus_bandwidth = reduce->large_bus_bandwidth,
                                                        .large_bus_bandwidth_again = reduce->large_bus_bandwidth_again,
                                                        .taken = reduce->taken};
  }
  measurement.all_reduce_failure = result.all_reduce_failure;
  return measurement;
}

spec::Survey survey_of(const LinkTestResult& result, const spec::Cluster& cluster, const std::vector<NodePair>& pairs) {
  std::vector<std::optional<SeenNode>> seen(cluster.nodes.size());
  const auto node_at = [&](int index) -> SeenNode& {
    const auto place = static_cast<std::size_t>(index);
    if (!seen[place]) {
      seen[place] = SeenNode{{.name = cluster.nodes[place].name, .machine = spec::Machine{}}, cluster.nodes[place]};
      seen[place]->place.rails.clear();
    }
    return *seen[place];
  };
  for (std::size_t i = 0; i < pairs.size() && i < result.pairs.size(); ++i) {
    const NodePair& pair = pairs[i];
    const spec::ClusterNode& a = cluster.nodes[static_cast<std::size_t>(pair.a)];
    const spec::ClusterNode& b = cluster.nodes[static_cast<std::size_t>(pair.b)];
    for (std::size_t j = 0; j < pair.rails.size() && j < result.pairs[i].rails.size(); ++j) {
      const PairRail& rail = pair.rails[j];
      const PairRailFacts& facts = result.pairs[i].rails[j];
      node_at(pair.a).add(rail.a, rail.b, b.name, facts.a, rail.name, a);
      node_at(pair.b).add(rail.b, rail.a, a.name, facts.b, rail.name, b);
    }
    node_at(pair.a).add_omitted(result.pairs[i].rails_a, a);
    node_at(pair.b).add_omitted(result.pairs[i].rails_b, b);
  }
  spec::Survey survey{.cluster = cluster, .nodes = {}, .measurement = measurement_of(result)};
  survey.cluster->nodes.clear();
  for (std::optional<SeenNode>& one : seen) {
    if (!one) continue;
    survey.nodes.push_back(std::move(one->node));
    survey.cluster->nodes.push_back(std::move(one->place));
  }
  return survey;
}

spec::Survey survey_of(const DiscoverResult& result) {
  const LinkMap& map = result.discovery.map;
  spec::Survey survey;
  for (const FoundNode& node : result.nodes) {
    survey.nodes.push_back({.name = node.access.name, .machine = node.report.machine});
  }
  survey.cabling = spec::Cabling{.source = result.source,
                                 .adjacencies = map.adjacencies,
                                 .segments = map.segments,
                                 .loops = map.loops,
                                 .topology = map.topology,
                                 .unknown_nodes = result.unknown_nodes,
                                 .unconfirmed = result.unconfirmed};
  return survey;
}

}  // namespace yoke::link
