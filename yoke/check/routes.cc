// Where packets go that no program binds to an interface: to the peers' fast addresses, and around a ring.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/rules.h"

namespace yoke {
namespace {

using NameList = std::vector<std::string>;

// From each joined half to its peer: the routes that are another rule's concern, or right, are left out.
struct WrongRoute {
  const HalfEnd* from = nullptr;
  const HalfEnd* to = nullptr;
  NameList ways;
};

std::vector<WrongRoute> wrong_routes(const ClusterView& view, const CheckedNode& node) {
  std::vector<WrongRoute> wrong;
  for (const HalfEnd* end : view.halves_of(node)) {
    for (const std::size_t index : end->peers) {
      const HalfEnd& peer = view.halves[index];
      if (!are_joined(*end, peer) || !goes_elsewhere(*end, peer)) continue;
      const NameList ways = *ways_to(*end, peer);
      const NetworkInterface* outsider = outsider_in_network(view, *end);
      // Halves in one network, an outsider in it, an address that is here too: each has its rule.
      const auto is_explained = [&](const std::string& way) {
        return (outsider && outsider->name == way) ||
               (view.find_half(node.name, way) && (shares_a_subnet(view, *end) || has_double(view, peer)));
      };
      const bool explained = !ways.empty() && std::all_of(ways.begin(), ways.end(), [&](const std::string& way) {
        return way == end->name || is_explained(way);
      });
      if (!explained) wrong.push_back({end, &peer, ways});
    }
  }
  return wrong;
}

bool is_half(const ClusterView& view, const CheckedNode& node, const std::string& interface) {
  return view.find_half(node.name, interface) != nullptr;
}

bool owns(const ClusterView& view, const CheckedNode& node, Ipv4 address) {
  const auto own = view.halves_of(node);
  return std::any_of(own.begin(), own.end(),
                     [&](const HalfEnd* end) { return end->address && end->address->address == address; });
}

const CheckedNode* owner_of(const ClusterView& view, Ipv4 address) {
  for (const HalfEnd& end : view.halves) {
    if (end.address && end.address->address == address) return end.node;
  }
  return nullptr;
}

// The nodes through which the main tables lead from one node to an address, and the one at which they end before it.
struct Walk {
  std::vector<const CheckedNode*> through;
  const CheckedNode* stuck = nullptr;
  std::string why;  // "has no route to 192.168.102.3"
};

Walk walk(const ClusterView& view, const CheckedNode& start, Ipv4 address) {
  Walk found;
  const CheckedNode* node = &start;
  for (std::size_t hops = 0; hops <= view.facts.nodes.size(); ++hops) {
    if (owns(view, *node, address)) return found;
    if (node != &start) found.through.push_back(node);
    const Route* route = find_route(*node->machine, address);
    const auto stop = [&](std::string why) {
      found.stuck = node;
      found.why = std::move(why);
      return found;
    };
    if (!route) return stop(fmt::format("has no route to {}", to_string(address)));
    if (!is_half(view, *node, route->interface)) {
      return stop(fmt::format("sends what is for {} by {}", to_string(address), route->interface));
    }
    const CheckedNode* next = owner_of(view, route->gateway.value_or(address));
    if (!next) {
      return stop(fmt::format("sends what is for {} to {}, which no node has", to_string(address),
                              to_string(route->gateway.value_or(address))));
    }
    node = next;
  }
  found.stuck = &start;
  found.why = fmt::format("and others send what is for {} around in circles", to_string(address));
  return found;
}

// The address that what a node sends to another carries.
std::optional<Ipv4> source_towards(const ClusterView& view, const CheckedNode& node, Ipv4 address) {
  const Route* route = find_route(*node.machine, address);
  const HalfEnd* end = route ? view.find_half(node.name, route->interface) : nullptr;
  return end && end->address ? std::optional(end->address->address) : std::nullopt;
}

// Where a way that is not passed may end: one node and why, or those that pass it on, there or back.
struct Suspicion {
  NameList nodes;
  std::string why;
  friend auto operator<=>(const Suspicion&, const Suspicion&) = default;
};

// A setting of those that pass it on; of the ends, which filter what comes by another way than their answer goes.
std::optional<Suspicion> suspect_setting(const Walk& there, const Walk& back, const CheckedNode& node,
                                         const CheckedNode* peer) {
  const auto find = [](const CheckedNode& hop, std::string_view word) -> std::optional<Suspicion> {
    for (const std::string& setting : hop.ring_settings) {
      if (setting.find(word) != std::string::npos) return Suspicion{{hop.name}, "has " + setting};
    }
    return std::nullopt;
  };
  for (const auto& through : {there.through, back.through}) {
    for (const CheckedNode* hop : through) {
      if (auto found = find(*hop, "")) return found;
    }
  }
  for (const CheckedNode* end : {&node, peer}) {
    if (!end) continue;
    if (auto found = find(*end, ".rp_filter ")) return found;
  }
  return std::nullopt;
}

Suspicion suspect(const ClusterView& view, const CheckedNode& node, const FarTrial& far) {
  if (far.routed == false) return {{node.name}, fmt::format("has no route to {}", to_string(far.address))};
  for (const std::string& way : far.routes) {
    if (is_half(view, node, way)) continue;
    return {{node.name}, fmt::format("sends what is for {} by {}", to_string(far.address), way)};
  }
  const Walk there = walk(view, node, far.address);
  if (there.stuck) return {{there.stuck->name}, there.why};
  const CheckedNode* peer = view.find_node(far.peer);
  const auto source = source_towards(view, node, far.address);
  const Walk back = peer && peer->machine && source ? walk(view, *peer, *source) : Walk{};
  if (back.stuck) return {{back.stuck->name}, back.why};
  if (auto known = suspect_setting(there, back, node, peer)) return *known;
  std::set<std::string> all, dropping;
  for (const auto& through : {there.through, back.through}) {
    for (const CheckedNode* hop : through) {
      all.insert(hop->name);
      if (hop->drops_packets == true) dropping.insert(hop->name);
    }
  }
  if (all.empty()) all.insert(far.peer);  // nobody lies between
  const std::set<std::string>& likely = dropping.empty() ? all : dropping;
  return {{likely.begin(), likely.end()}, ""};
}

bool has_ring_route(const ClusterView& view, const CheckedNode& node) {
  return std::any_of(node.far.begin(), node.far.end(), [&](const FarTrial& far) {
    return std::any_of(far.routes.begin(), far.routes.end(),
                       [&](const std::string& way) { return is_half(view, node, way); });
  });
}

bool are_neighbours_by_cable(const ClusterView& view, const CheckedNode& node, const std::string& other) {
  const auto own = view.halves_of(node);
  return std::any_of(own.begin(), own.end(), [&](const HalfEnd* end) {
    return std::any_of(end->peers.begin(), end->peers.end(),
                       [&](std::size_t peer) { return view.halves[peer].node->name == other; });
  });
}

// What leaves no whole way around the ring, and is told by itself.
bool is_ring_broken(const ClusterView& view) {
  for (const auto look :
       {find_nodes_asking, find_nodes_unreachable, find_nodes_unread, find_nodes_twice, find_nodes_swapped,
        find_wrong_prefixes, find_missing_interfaces, find_ports_down, find_halves_down, find_halves_unaddressed,
        find_double_addresses, find_other_addresses, find_other_subnets, find_shared_subnets, find_routes_elsewhere,
        find_missing_routes, find_silent_halves, find_forwarding_off, find_docker_forward_drops}) {
    if (!look(view).empty()) return true;
  }
  return false;
}

Advice ring_advice(const Suspicion& where, const std::set<std::string>& pairs, const std::set<std::string>& reasons) {
  const std::string names = fmt::format("{}", fmt::join(where.nodes, " or "));
  Advice advice{.subject = "ring",
                .what = fmt::format("around the ring {} is not reached", fmt::join(pairs, ", ")),
                .evidence = fmt::format("{} {}", names, fmt::join(reasons, ", ")),
                .consequence = "jobs over all nodes fail or wait: those that are not neighbours do not meet",
                .fix =
                    "'yoke link setup' writes the routes of a ring; a setting is mended by 'sysctl -w': forwarding 1, "
                    "rp_filter 0"};
  if (where.nodes.size() == 1) advice.node = where.nodes.front();
  if (!where.why.empty()) return advice;
  advice.subject.reset();
  if (where.nodes.size() > 1) advice.subject = fmt::format("{}", fmt::join(where.nodes, ", "));
  advice.evidence = fmt::format("no answer to a connection or a ping; the routes are whole, so it ends at {}", names);
  advice.fix =
      "on those that pass it on: 'sysctl net.ipv4.conf' (forwarding must be 1 on every half, rp_filter 0), and "
      "'nft list ruleset' for what drops it";
  return advice;
}

}  // namespace

AdviceList find_routes_elsewhere(const ClusterView& view) {
  AdviceList list;
  for (const CheckedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::set<std::string> addresses, ways;
    bool outside = false;
    for (const WrongRoute& wrong : wrong_routes(view, node)) {
      for (const std::string& way : wrong.ways) {
        if (way == wrong.from->name) continue;
        addresses.insert(to_string(wrong.to->address->address));
        ways.insert(way);
        outside |= !is_half(view, node, way);
      }
    }
    if (ways.empty()) continue;
    list.push_back(
        {.node = node.name,
         .subject = fmt::format("{}", fmt::join(ways, ", ")),
         .what = fmt::format("{} sends to its peers' fast addresses by {}", node.name, fmt::join(ways, ", ")),
         .evidence = fmt::format("the routes to {} go by {}", fmt::join(addresses, ", "), fmt::join(ways, ", ")),
         .consequence = outside ? "the link works, and traffic goes over the management network all the same, at its "
                                  "rate"
                                : "one half carries what is meant for both, and answers that come by the wrong half "
                                  "may be dropped",
         .fix = fmt::format("'ip route get {}' on {} shows the route; remove it ('ip route del'), or the rule that "
                            "leads to it ('ip rule')",
                            *addresses.begin(), node.name)});
  }
  return list;
}

AdviceList find_missing_routes(const ClusterView& view) {
  AdviceList list;
  for (const CheckedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::map<const HalfEnd*, NameList> missing;
    for (const WrongRoute& wrong : wrong_routes(view, node)) {
      if (wrong.ways.empty()) missing[wrong.from].push_back(to_string(wrong.to->address->address));
    }
    for (const auto& [end, addresses] : missing) {
      list.push_back(
          {.node = node.name,
           .subject = end->name,
           .what = fmt::format("{} has no route to its peers on {}", node.name, end->title()),
           .evidence = fmt::format("the kernel has no way to {}, or one that discards, although {} is up and has {}",
                                   fmt::join(addresses, ", "), end->name, to_string(*end->address)),
           .consequence = "only programs that bind to the interface get through; others say 'Network is unreachable'",
           .fix = fmt::format("'ip route get {}' and 'ip rule' on {}; 'ip route add {} dev {} src {}' where the "
                              "network's own route is gone",
                              addresses.front(), node.name, to_string(end->address->network()), end->name,
                              to_string(end->address->address))});
    }
  }
  return list;
}

AdviceList find_broken_ring_paths(const ClusterView& view) {
  std::map<Suspicion, std::pair<std::set<std::string>, std::set<std::string>>> found;  // pairs and reasons
  for (const CheckedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const FarTrial& far : node.far) {
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
  if (found.empty() || is_ring_broken(view)) return {};
  AdviceList list;
  for (const auto& [where, told] : found) list.push_back(ring_advice(where, told.first, told.second));
  return list;
}

}  // namespace yoke
