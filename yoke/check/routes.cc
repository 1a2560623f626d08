// Where packets go that no program binds to an interface: to the peers' fast addresses.
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

std::vector<WrongRoute> wrong_routes(const ClusterView& view, const SurveyedNode& node) {
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

}  // namespace

AdviceList find_routes_elsewhere(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::set<std::string> addresses, ways, halves;
    std::vector<const HalfEnd*> rails;
    bool outside = false;
    for (const WrongRoute& wrong : wrong_routes(view, node)) {
      for (const std::string& way : wrong.ways) {
        if (way == wrong.from->name) continue;
        addresses.insert(to_string(wrong.to->address->address));
        ways.insert(way);
        halves.insert(wrong.from->name);
        rails.insert(rails.end(), {wrong.from, wrong.to});
        outside |= !view.find_half(node.name, way);
      }
    }
    if (ways.empty()) continue;
    list.push_back(
        {.node = node.name,
         .subject = fmt::format("{}", fmt::join(ways, ", ")),
         .what = fmt::format("{} sends by {} what is for its peers on {}", node.name, fmt::join(ways, ", "),
                             fmt::join(halves, " and ")),
         .evidence = fmt::format("the routes to {} go by {}", fmt::join(addresses, ", "), fmt::join(ways, ", ")),
         .consequence = outside ? "the link works, and traffic goes over the management network all the same, at its "
                                  "rate"
                                : "one half carries what is meant for both, and answers that come by the wrong half "
                                  "may be dropped",
         .fix = fmt::format("'ip route get {}' on {} shows the route; remove it ('ip route del'), or the rule that "
                            "leads to it ('ip rule')",
                            *addresses.begin(), node.name),
         .rails = std::move(rails)});
  }
  return list;
}

AdviceList find_missing_routes(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::map<const HalfEnd*, NameList> missing;
    std::map<const HalfEnd*, std::vector<const HalfEnd*>> rails;
    for (const WrongRoute& wrong : wrong_routes(view, node)) {
      if (!wrong.ways.empty()) continue;
      missing[wrong.from].push_back(to_string(wrong.to->address->address));
      rails[wrong.from].insert(rails[wrong.from].end(), {wrong.from, wrong.to});
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
                              to_string(end->address->address)),
           .rails = rails[end]});
    }
  }
  return list;
}

}  // namespace yoke
