// Where packets go that no program binds to an interface: to the peers' fast addresses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

using NameList = std::vector<std::string>;

// From each joined rail to its peer: the routes that are another rule's concern, or right, are left out.
struct WrongRoute {
  const RailEnd* from = nullptr;
  const RailEnd* to = nullptr;
  NameList ways;
};

std::vector<WrongRoute> wrong_routes(const ClusterView& view, const spec::SurveyedNode& node) {
  std::vector<WrongRoute> wrong;
  for (const RailEnd* end : view.rails_of(node)) {
    for (const std::size_t index : end->peers) {
      const RailEnd& peer = view.rails[index];
      if (!are_joined(*end, peer) || !goes_elsewhere(*end, peer)) continue;
      const NameList ways = *routes_to(*end, peer);
      const spec::NetworkInterface* outsider = outsider_in_network(view, *end);
      // Rails in one network, an outsider in it, an address that is here too: each has its rule.
      const auto is_explained = [&](const std::string& way) {
        return (outsider && outsider->name == way) ||
               (view.find_rail(node.name, way) && (shares_a_subnet(view, *end) || has_double(view, peer)));
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
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::set<std::string> addresses, ways, rail_names;
    std::vector<const RailEnd*> rails;
    bool outside = false;
    for (const WrongRoute& wrong : wrong_routes(view, node)) {
      for (const std::string& way : wrong.ways) {
        if (way == wrong.from->name) continue;
        addresses.insert(yoke::to_string(wrong.to->address->address));
        ways.insert(way);
        rail_names.insert(wrong.from->name);
        rails.insert(rails.end(), {wrong.from, wrong.to});
        outside |= !view.find_rail(node.name, way);
      }
    }
    if (ways.empty()) continue;
    list.push_back(
        {.node = node.name,
         .subject = fmt::format("{}", fmt::join(ways, ", ")),
         .what = fmt::format("{} sends traffic over {} that should go over {}", node.name, fmt::join(ways, ", "),
                             fmt::join(rail_names, " and ")),
         .evidence = fmt::format("the routes to {} go by {}", fmt::join(addresses, ", "), fmt::join(ways, ", ")),
         .consequence = outside ? "the link works, and traffic goes over the management network all the same, at its "
                                  "rate"
                                : "one rail carries what is meant for both, and answers that come by the wrong rail "
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
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::map<const RailEnd*, NameList> missing;
    std::map<const RailEnd*, std::vector<const RailEnd*>> rails;
    for (const WrongRoute& wrong : wrong_routes(view, node)) {
      if (!wrong.ways.empty()) continue;
      missing[wrong.from].push_back(yoke::to_string(wrong.to->address->address));
      rails[wrong.from].insert(rails[wrong.from].end(), {wrong.from, wrong.to});
    }
    for (const auto& [end, addresses] : missing) {
      list.push_back(
          {.node = node.name,
           .subject = end->name,
           .what = fmt::format("{} has no route to its peers on {}", node.name, end->title()),
           .evidence = fmt::format("the kernel has no way to {}, or one that discards, although {} is up and has {}",
                                   fmt::join(addresses, ", "), end->name, yoke::to_string(*end->address)),
           .consequence = "only programs that bind to the interface get through; others say 'Network is unreachable'",
           .fix = fmt::format("'ip route get {}' and 'ip rule' on {}; 'ip route add {} dev {} src {}' where the "
                              "network's own route is gone",
                              addresses.front(), node.name, yoke::to_string(end->address->network()), end->name,
                              yoke::to_string(end->address->address)),
           .rails = rails[end]});
    }
  }
  return list;
}

}  // namespace yoke::check
