// What passes around a ring, through nodes that pass it on: by their routes and settings, and by what was tried.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

using NameList = std::vector<std::string>;

bool is_rail(const ClusterView& view, const spec::SurveyedNode& node, const std::string& interface) {
  return view.find_rail(node.name, interface) != nullptr;
}

bool owns(const ClusterView& view, const spec::SurveyedNode& node, Ipv4 address) {
  const auto own = view.rails_of(node);
  return std::any_of(own.begin(), own.end(),
                     [&](const RailEnd* end) { return end->address && end->address->address == address; });
}

const spec::SurveyedNode* owner_of(const ClusterView& view, Ipv4 address) {
  for (const RailEnd& end : view.rails) {
    if (end.address && end.address->address == address) return end.node;
  }
  return nullptr;
}

// The nodes through which the main tables lead from one node to an address, and the one at which they end before it.
struct Walk {
  std::vector<const spec::SurveyedNode*> through;
  const spec::SurveyedNode* stuck = nullptr;
  std::string why;  // "has no route to 192.168.102.3"
};

Walk walk(const ClusterView& view, const spec::SurveyedNode& start, Ipv4 address) {
  Walk found;
  const spec::SurveyedNode* node = &start;
  for (std::size_t hops = 0; hops <= view.facts.nodes.size(); ++hops) {
    if (owns(view, *node, address)) return found;
    if (node != &start) found.through.push_back(node);
    const spec::Route* route = find_route(*node->machine, address);
    const auto stop = [&](std::string why) {
      found.stuck = node;
      found.why = std::move(why);
      return found;
    };
    if (!route) return stop(fmt::format("has no route to {}", yoke::to_string(address)));
    if (!is_rail(view, *node, route->interface)) {
      return stop(fmt::format("sends what is for {} by {}", yoke::to_string(address), route->interface));
    }
    const spec::SurveyedNode* next = owner_of(view, route->gateway.value_or(address));
    if (!next) {
      return stop(fmt::format("sends what is for {} to {}, which no node has", yoke::to_string(address),
                              yoke::to_string(route->gateway.value_or(address))));
    }
    node = next;
  }
  found.stuck = &start;
  found.why = fmt::format("and others send what is for {} around in circles", yoke::to_string(address));
  return found;
}

// The address that what a node sends to another carries.
std::optional<Ipv4> source_towards(const ClusterView& view, const spec::SurveyedNode& node, Ipv4 address) {
  const spec::Route* route = find_route(*node.machine, address);
  const RailEnd* end = route ? view.find_rail(node.name, route->interface) : nullptr;
  return end && end->address ? std::optional(end->address->address) : std::nullopt;
}

// Where a way that is not passed may end: one node and why, or those that pass it on, there or back.
struct Suspicion {
  NameList nodes;
  std::string why;
  friend auto operator<=>(const Suspicion&, const Suspicion&) = default;
};

// A setting of those that pass it on; of the ends, which filter what comes by another way than their answer goes.
std::optional<Suspicion> suspect_setting(const Walk& there, const Walk& back, const spec::SurveyedNode& node,
                                         const spec::SurveyedNode* peer) {
  const auto find = [](const spec::SurveyedNode& hop, std::string_view word) -> std::optional<Suspicion> {
    for (const std::string& setting : hop.ring_settings) {
      if (setting.find(word) != std::string::npos) return Suspicion{{hop.name}, "has " + setting};
    }
    return std::nullopt;
  };
  for (const auto& through : {there.through, back.through}) {
    for (const spec::SurveyedNode* hop : through) {
      if (auto found = find(*hop, "")) return found;
    }
  }
  for (const spec::SurveyedNode* end : {&node, peer}) {
    if (!end) continue;
    if (auto found = find(*end, ".rp_filter ")) return found;
  }
  return std::nullopt;
}

// The way from a node to a far address and that of the answer, as the main tables have them.
struct RoundTrip {
  Walk there, back;

  bool is_complete() const { return !there.stuck && !back.stuck; }
  std::set<const spec::SurveyedNode*> through() const {
    std::set<const spec::SurveyedNode*> all(there.through.begin(), there.through.end());
    all.insert(back.through.begin(), back.through.end());
    return all;
  }
};

RoundTrip round_trip(const ClusterView& view, const spec::SurveyedNode& node, const spec::RingProbe& far) {
  RoundTrip trip{.there = walk(view, node, far.address), .back = {}};
  const spec::SurveyedNode* peer = view.find_node(far.peer);
  const auto source = source_towards(view, node, far.address);
  if (peer && peer->machine && source) trip.back = walk(view, *peer, *source);
  return trip;
}

Suspicion suspect(const ClusterView& view, const spec::SurveyedNode& node, const spec::RingProbe& far) {
  if (far.routed == false) return {{node.name}, fmt::format("has no route to {}", yoke::to_string(far.address))};
  for (const std::string& way : far.routes) {
    if (is_rail(view, node, way)) continue;
    return {{node.name}, fmt::format("sends what is for {} by {}", yoke::to_string(far.address), way)};
  }
  const RoundTrip trip = round_trip(view, node, far);
  for (const Walk& way : {trip.there, trip.back}) {
    if (way.stuck) return {{way.stuck->name}, way.why};
  }
  if (auto known = suspect_setting(trip.there, trip.back, node, view.find_node(far.peer))) return *known;
  std::set<std::string> all, dropping;
  for (const spec::SurveyedNode* hop : trip.through()) {
    all.insert(hop->name);
    if (hop->drops_packets == true || hop->forward_policy == "DROP") dropping.insert(hop->name);
  }
  if (all.empty()) all.insert(far.peer);  // nobody lies between
  const std::set<std::string>& likely = dropping.empty() ? all : dropping;
  return {{likely.begin(), likely.end()}, ""};
}

// What the trials whose way leads through a node say of its packet filter: nothing where one fails by what is known.
enum class Passing { kNotTried, kPasses, kFails };
Passing tried_through(const ClusterView& view, const spec::SurveyedNode& hop) {
  Passing found = Passing::kNotTried;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    for (const spec::RingProbe& far : node.far) {
      if (!node.machine || !far.reached || !owner_of(view, far.address)) continue;
      const RoundTrip trip = round_trip(view, node, far);
      if (!trip.is_complete() || !trip.through().contains(&hop)) continue;
      if (*far.reached) {
        found = Passing::kPasses;
        continue;
      }
      const Suspicion where = suspect(view, node, far);
      const bool is_named = std::find(where.nodes.begin(), where.nodes.end(), hop.name) != where.nodes.end();
      if (is_named && where.why.empty()) return Passing::kFails;
    }
  }
  return found;
}

bool has_ring_route(const ClusterView& view, const spec::SurveyedNode& node) {
  return std::any_of(node.far.begin(), node.far.end(), [&](const spec::RingProbe& far) {
    return std::any_of(far.routes.begin(), far.routes.end(),
                       [&](const std::string& way) { return is_rail(view, node, way); });
  });
}

bool are_neighbours_by_cable(const ClusterView& view, const spec::SurveyedNode& node, const std::string& other) {
  const auto own = view.rails_of(node);
  return std::any_of(own.begin(), own.end(), [&](const RailEnd* end) {
    return std::any_of(end->peers.begin(), end->peers.end(),
                       [&](std::size_t peer) { return view.rails[peer].node->name == other; });
  });
}

Advice ring_advice(std::string_view topology, const Suspicion& where, const std::set<std::string>& pairs,
                   const std::set<std::string>& reasons) {
  const std::string names = fmt::format("{}", fmt::join(where.nodes, " or "));
  Advice advice{.subject = std::string(topology),
                .what = fmt::format("{} the {} {} is not reached", topology == "ring" ? "around" : "over", topology,
                                    fmt::join(pairs, ", ")),
                .evidence = fmt::format("{} {}", names, fmt::join(reasons, ", ")),
                .consequence = "jobs over all nodes fail or wait: those that are not neighbours do not meet",
                .fix = fmt::format("'yoke link setup' writes the routes of a {}; a setting is mended by 'sysctl -w': "
                                   "forwarding 1, rp_filter 0",
                                   topology)};
  if (where.nodes.size() == 1) advice.node = where.nodes.front();
  if (!where.why.empty()) return advice;
  advice.subject.reset();
  if (where.nodes.size() > 1) advice.subject = fmt::format("{}", fmt::join(where.nodes, ", "));
  advice.evidence = fmt::format("no answer to a connection or a ping; the routes are whole, so it ends at {}", names);
  advice.fix =
      "on those that pass it on: 'sysctl net.ipv4.conf' (forwarding must be 1 on every rail, rp_filter 0), and "
      "'nft list ruleset' for what drops it";
  return advice;
}

// Rings of more than three, and any fabric where a fast address is reached through another node. In a ring of three
// the routes through a neighbour lead to its own far end, which needs no forwarding.
bool must_forward(const ClusterView& view, const spec::SurveyedNode& node) {
  const auto is_of_node = [&](Ipv4 address) {
    for (const RailEnd* end : view.rails_of(node)) {
      if (end->address && end->address->address == address) return true;
    }
    return false;
  };
  // Also at an address that a rail should have and has lost: that is another rule's.
  const auto is_wanted_there = [&](Ipv4 address) {
    const auto own = view.rails_of(node);
    return std::any_of(own.begin(), own.end(),
                       [&](const RailEnd* end) { return end->wanted && end->wanted->address == address; });
  };
  const auto ends_there = [&](const spec::Route& route) {
    if (!route.destination || route.destination->length != 32) return false;
    return is_of_node(route.destination->address) || is_wanted_there(route.destination->address);
  };
  for (const RailEnd& other : view.rails) {
    if (other.node == &node) continue;
    for (const spec::Route& route : other.node->machine->routes) {
      const bool through = route.interface == other.name && route.gateway && is_of_node(*route.gateway);
      if (through && !ends_there(route)) return true;
    }
  }
  return false;
}

}  // namespace

AdviceList find_forwarding_off(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || node.machine->ip_forward != false || !must_forward(view, node)) continue;
    list.push_back({.node = node.name,
                    .subject = "net.ipv4.ip_forward",
                    .what = fmt::format("{} does not forward between its two cables", node.name),
                    .evidence = "other nodes have routes through it; net.ipv4.ip_forward is 0",
                    .consequence = "nodes that are not neighbours in the ring do not reach each other",
                    .fix = "'sysctl -w net.ipv4.ip_forward=1' there; 'yoke link setup' makes it last"});
  }
  return list;
}

AdviceList find_docker_forward_drops(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const bool by_policy = node.forward_policy == "DROP" && !node.forward_accepts;
    if (!node.machine || !(by_policy || node.forward_drop) || !must_forward(view, node)) continue;
    // Rules are read in part only: what was tried says more.
    const Passing tried = tried_through(view, node);
    if (tried == Passing::kPasses || (tried == Passing::kNotTried && node.forward_exceptions)) continue;
    list.push_back({.node = node.name,
                    .subject = by_policy ? "iptables FORWARD" : "nft forward",
                    .what = fmt::format("{} drops what it should pass on around the ring", node.name),
                    .evidence = by_policy
                                    ? "the policy of iptables' FORWARD chain is DROP, as Docker sets it, and no rule "
                                      "lets all of the fast interfaces pass"
                                    : fmt::format("{} ('nft list ruleset')", *node.forward_drop),
                    .consequence = "looks exactly like a dead cable between nodes that are not neighbours",
                    .fix = "let the fast interfaces pass there: 'iptables -I DOCKER-USER -i INTERFACE -j ACCEPT' where "
                           "it is Docker's, else a rule before that one"});
  }
  return list;
}

AdviceList find_broken_ring_paths(const ClusterView& view) {
  std::map<Suspicion, std::pair<std::set<std::string>, std::set<std::string>>> found;  // pairs and reasons
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::RingProbe& far : node.far) {
      if (far.reached != false || !owner_of(view, far.address)) continue;
      // Neighbours meet on their own cable: the far ends of theirs are reached only where somebody made routes to them.
      if (are_neighbours_by_cable(view, node, far.peer) && !has_ring_route(view, node)) continue;
      Suspicion where = suspect(view, node, far);
      const std::string reason = where.why;
      if (!where.why.empty()) where.why = "known";
      found[where].first.insert(fmt::format("{} from {}", far.peer, node.name));
      found[where].second.insert(reason);
    }
  }
  AdviceList list;
  const std::string_view topology = view.topology() == spec::Topology::kMesh ? "mesh" : "ring";
  for (const auto& [where, reported] : found) {
    list.push_back(ring_advice(topology, where, reported.first, reported.second));
  }
  return list;
}

}  // namespace yoke::check
