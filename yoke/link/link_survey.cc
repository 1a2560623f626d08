#include "yoke/link/link_survey.h"

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke {
namespace {

std::string interface_name(const HalfFacts& facts) { return facts.interface ? facts.interface->name : ""; }

void set_delivery(HalfMeasurement& way, const HalfLatency& latency) {
  for (const PingResult& row : latency.rows) way.latency = std::min(way.latency.value_or(row.least), row.least);
  for (const SentMessages& sent : latency.sent) {
    if (sent.from != way.from) continue;
    way.messages = sent.count;
    way.resent = sent.resent;
  }
}

// One half of a pair in one direction.
HalfMeasurement way_of(const PairResult& pair, const PairHalfFacts& half, const std::string& from) {
  const bool forward = from == pair.a;
  HalfMeasurement way{.from = from,
                      .to = forward ? pair.b : pair.a,
                      .from_interface = interface_name(forward ? half.a : half.b),
                      .to_interface = interface_name(forward ? half.b : half.a),
                      .transport = pair.transport};
  for (const LinkPhase& phase : pair.phases) {
    for (const HalfRate& rate : phase.rates) {
      if (rate.half != half.name || rate.from != from) continue;
      way.set_rate(to_document(phase.kind).text, rate.rate, rate.again);
      for (const NodeLoad& load : phase.loads) way.taken = std::max(way.taken, load.taken);
    }
  }
  for (const HalfLatency& latency : pair.latencies) {
    if (latency.half == half.name) set_delivery(way, latency);
  }
  for (const HalfFailure& failure : pair.failures) {
    if (failure.half == half.name) way.failure = failure.message;
  }
  return way;
}

NetworkInterface interface_of(const LinkInterface& link, const std::string& half) {
  NetworkInterface interface { .name = link.name, .kind = InterfaceKind::kEthernet, .mtu = link.mtu };
  interface.up = link.up;
  interface.carrier = link.carrier;
  interface.half = half;
  for (const std::string& text : link.ipv4) {
    if (const auto address = parse_ipv4_prefix(text)) interface.addresses.push_back(*address);
  }
  return interface;
}

// A node as the measurement saw it, and its part of the cluster file.
struct SeenNode {
  SurveyedNode node;
  ClusterNode place;

  void add(const HalfPlace& own, const HalfPlace& peer, const std::string& peer_name, const HalfFacts& facts,
           const std::string& half, const ClusterNode& file) {
    const auto known = std::find_if(place.halves.begin(), place.halves.end(),
                                    [&](const Half& one) { return one.interface == own.interface; });
    if (known == place.halves.end()) {
      for (const Half& one : file.halves) {
        if (one.interface == own.interface) place.halves.push_back(one);
      }
      if (facts.interface) node.machine->interfaces.push_back(interface_of(*facts.interface, half));
    }
    const auto peer_address = parse_ipv4(peer.address);
    if (!facts.interface || !peer_address) return;
    PathTrial path{.interface = own.interface, .peer = peer_name, .peer_address = *peer_address};
    path.routed = facts.route.has_value();
    if (facts.route) path.routes = {*facts.route};
    node.paths.push_back(std::move(path));
  }
};

}  // namespace

Measurement measurement_of(const LinkTestResult& result) {
  Measurement measurement;
  if (result.expected) {
    measurement.expected = result.expected->half_rate;
    measurement.expected_source = result.expected->source;
  }
  for (const PairResult& pair : result.pairs) {
    for (const PairHalfFacts& half : pair.halves) {
      for (const std::string& from : {pair.a, pair.b}) measurement.halves.push_back(way_of(pair, half, from));
    }
    for (const CounterChange& counter : pair.counters) {
      measurement.counters.push_back({counter.node, counter.interface, counter.name, counter.change});
    }
    if (measurement.transport_reason.empty()) measurement.transport_reason = pair.transport_reason;
    auto& known = measurement.transports;
    if (std::find(known.begin(), known.end(), pair.transport) == known.end()) known.push_back(pair.transport);
  }
  if (const auto& reduce = result.all_reduce) {
    measurement.all_reduce = AllReduceMeasurement{.ranks = reduce->ranks,
                                                  .carrier = reduce->carrier,
                                                  .small_time = reduce->small_time,
                                                  .large_size = reduce->large_size,
                                                  .large_bus_bandwidth = reduce->large_bus_bandwidth,
                                                  .large_bus_bandwidth_again = reduce->large_bus_bandwidth_again,
                                                  .taken = reduce->taken};
  }
  measurement.all_reduce_failure = result.all_reduce_failure;
  return measurement;
}

Survey survey_of(const LinkTestResult& result, const Cluster& cluster, const std::vector<NodePair>& pairs) {
  std::vector<std::optional<SeenNode>> seen(cluster.nodes.size());
  const auto node_at = [&](int index) -> SeenNode& {
    const auto place = static_cast<std::size_t>(index);
    if (!seen[place]) {
      seen[place] = SeenNode{{.name = cluster.nodes[place].name, .machine = Machine{}}, cluster.nodes[place]};
      seen[place]->place.halves.clear();
    }
    return *seen[place];
  };
  for (std::size_t i = 0; i < pairs.size() && i < result.pairs.size(); ++i) {
    const NodePair& pair = pairs[i];
    const ClusterNode& a = cluster.nodes[static_cast<std::size_t>(pair.a)];
    const ClusterNode& b = cluster.nodes[static_cast<std::size_t>(pair.b)];
    for (std::size_t j = 0; j < pair.halves.size() && j < result.pairs[i].halves.size(); ++j) {
      const PairHalf& half = pair.halves[j];
      const PairHalfFacts& facts = result.pairs[i].halves[j];
      node_at(pair.a).add(half.a, half.b, b.name, facts.a, half.name, a);
      node_at(pair.b).add(half.b, half.a, a.name, facts.b, half.name, b);
    }
  }
  Survey survey{.cluster = cluster, .nodes = {}, .measurement = measurement_of(result)};
  survey.cluster->nodes.clear();
  for (std::optional<SeenNode>& one : seen) {
    if (!one) continue;
    survey.nodes.push_back(std::move(one->node));
    survey.cluster->nodes.push_back(std::move(one->place));
  }
  return survey;
}

Survey survey_of(const DiscoverResult& result) {
  const LinkMap& map = result.discovery.map;
  Survey survey;
  for (const FoundNode& node : result.nodes) {
    survey.nodes.push_back({.name = node.access.name, .machine = node.report.machine});
  }
  survey.cabling = Cabling{.source = result.source,
                           .sightings = map.sightings,
                           .segments = map.segments,
                           .loops = map.loops,
                           .topology = map.topology,
                           .strangers = result.strangers,
                           .unconfirmed = result.unconfirmed};
  return survey;
}

}  // namespace yoke
