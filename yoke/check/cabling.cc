// How the nodes are cabled, by who heard whom: what does not fit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/rules.h"
#include "yoke/spec/address_holder.h"
#include "yoke/spec/mesh.h"

namespace yoke::check {
namespace {

const std::string& node_name(const ClusterView& view, const spec::LinkEnd& end) {
  return view.facts.nodes[static_cast<std::size_t>(end.node)].name;
}

// "spark-1 port 0 half A (enp1s0f0np0)"
std::string describe(const ClusterView& view, const spec::LinkEnd& end) {
  return fmt::format("{} port {} half {} ({})", node_name(view, end), end.port, end.rail, end.interface);
}

std::vector<const RailEnd*> rails_of(const ClusterView& view, const std::vector<spec::LinkEnd>& ends) {
  std::vector<const RailEnd*> rails;
  for (const spec::LinkEnd& end : ends) {
    if (const RailEnd* rail = view.find_rail(node_name(view, end), end.interface)) rails.push_back(rail);
  }
  return rails;
}

std::string interface_state(const spec::NetworkInterface& interface) {
  if (!interface.up) return "is switched off";
  return interface.carrier ? "has a carrier" : "has no carrier";
}

bool is_heard_in_all(const spec::Cabling& cabling) { return cabling.source == spec::AdjacencySource::kBeacons; }

// The nodes of each segment: "spark-1-spark-2", each kind once.
std::vector<std::string> joined_nodes(const ClusterView& view) {
  std::vector<std::string> all;
  for (const spec::LinkSegment& segment : view.facts.cabling->segments) {
    std::vector<std::string> names;
    for (const spec::LinkEnd& end : segment.ends) {
      if (names.empty() || names.back() != node_name(view, end)) names.push_back(node_name(view, end));
    }
    std::string joined = fmt::format("{}", fmt::join(names, "-"));
    if (std::find(all.begin(), all.end(), joined) == all.end()) all.push_back(std::move(joined));
  }
  return all;
}

// Ports of which no interface hears another node: "spark-1 port 1 (enp1s0f1np1, enP2p1s0f1np1)".
std::vector<std::string> idle_ports(const ClusterView& view) {
  std::vector<std::string> idle;
  for (std::size_t i = 0; i < view.facts.nodes.size(); ++i) {
    const spec::SurveyedNode& node = view.facts.nodes[i];
    if (!node.machine) continue;
    std::map<int, std::vector<std::string>> ports;
    std::set<int> heard;
    for (const spec::NetworkInterface* interface : spec::fast_interfaces(*node.machine)) {
      ports[*interface->port].push_back(interface->name);
      for (const spec::LinkSegment& segment : view.facts.cabling->segments) {
        for (const spec::LinkEnd& end : segment.ends) {
          if (end.node == static_cast<int>(i) && end.interface == interface->name) heard.insert(*interface->port);
        }
      }
    }
    for (const auto& [port, names] : ports) {
      if (!heard.contains(port))
        idle.push_back(fmt::format("{} port {} ({})", node.name, port, fmt::join(names, ", ")));
    }
  }
  return idle;
}

// Of four nodes with split ports, which can be nothing but a mesh.
std::vector<std::string> pairs_without_link(const ClusterView& view) {
  std::vector<std::string> pairs;
  const int nodes = static_cast<int>(view.facts.nodes.size());
  if (!view.has_split_ports() || nodes != spec::kMeshNodes) return pairs;
  for (int a = 0; a < nodes; ++a) {
    for (int b = a + 1; b < nodes; ++b) {
      const bool joined = std::ranges::any_of(view.facts.cabling->segments, [&](const spec::LinkSegment& segment) {
        return segment.joins(a) && segment.joins(b);
      });
      if (joined) continue;
      pairs.push_back(fmt::format("{} and {}", view.facts.nodes[static_cast<std::size_t>(a)].name,
                                  view.facts.nodes[static_cast<std::size_t>(b)].name));
    }
  }
  return pairs;
}

Advice incomplete_mesh(const std::vector<std::string>& pairs) {
  return {.what = fmt::format("the full mesh of four nodes has no link between {}", fmt::join(pairs, ", ")),
          .evidence = fmt::format("the halves of their ports lead to different nodes, and {} of 6 links are heard",
                                  6 - pairs.size()),
          .consequence = "no cluster file can be written",
          .fix =
              "push the cable and the optics of that link in at both ends; two cables may be swapped, so that a pair "
              "has two links: 'yoke link discover' lists what each half hears"};
}

}  // namespace

AdviceList find_cable_loops(const ClusterView& view) {
  AdviceList list;
  for (const spec::LinkSegment& loop : view.facts.cabling->loops) {
    std::vector<std::string> ends;
    for (const spec::LinkEnd& end : loop.ends) ends.push_back(describe(view, end));
    const spec::LinkEnd& first = loop.ends.front();
    list.push_back({.node = node_name(view, first),
                    .subject = first.interface,
                    .what = fmt::format("a cable of {} leads back to itself", node_name(view, first)),
                    .evidence = fmt::format("its own beacon came back: {}", fmt::join(ends, " to ")),
                    .consequence = "this cable joins no nodes",
                    .fix = "put one end of the cable into another node"});
  }
  return list;
}

AdviceList find_crossed_rails(const ClusterView& view) {
  AdviceList list;
  const std::vector<spec::LinkSegment>& segments = view.facts.cabling->segments;
  if (view.has_split_ports()) return list;  // there a half may lead to any other
  // Behind a switch every rail may hear every other.
  if (std::ranges::any_of(segments, [](const spec::LinkSegment& segment) { return segment.ends.size() > 2; }))
    return list;
  for (const spec::LinkSegment& segment : segments) {
    const spec::LinkEnd& a = segment.ends.front();
    const spec::LinkEnd& b = segment.ends.back();
    if (a.rail == b.rail) continue;
    list.push_back({.node = node_name(view, a),
                    .subject = a.interface,
                    .what = fmt::format("rail {} of {} is joined to rail {} of {}", a.rail, node_name(view, a), b.rail,
                                        node_name(view, b)),
                    .evidence = fmt::format("{} hears {}", describe(view, a), describe(view, b)),
                    .consequence = "it works, but tools that pair interfaces by name pair the wrong ones",
                    .fix = "use a plain cable between the two ports, not a breakout",
                    .rails = rails_of(view, segment.ends)});
  }
  return list;
}

AdviceList find_silent_nodes(const ClusterView& view) {
  AdviceList list;
  const spec::Cabling& cabling = *view.facts.cabling;
  if (!is_heard_in_all(cabling)) return list;
  for (std::size_t i = 0; i < view.facts.nodes.size(); ++i) {
    const spec::SurveyedNode& node = view.facts.nodes[i];
    const bool joined = std::ranges::any_of(
        cabling.segments, [&](const spec::LinkSegment& segment) { return segment.joins(static_cast<int>(i)); });
    if (joined || !node.machine) continue;
    std::vector<std::string> states;
    for (const spec::NetworkInterface* interface : spec::fast_interfaces(*node.machine)) {
      states.push_back(fmt::format("{} {}", interface->name, interface_state(*interface)));
    }
    list.push_back(
        {.node = node.name,
         .what = fmt::format("no fast interface of {} reaches another node", node.name),
         .evidence = states.empty() ? "it has no fast interface" : fmt::format("{}", fmt::join(states, ", ")),
         .consequence = "all its traffic would go over the management network",
         .fix = "push the cable in at both ends; on a switch, enable the port; then discover again"});
  }
  return list;
}

AdviceList find_rails_unheard(const ClusterView& view) {
  AdviceList list;
  if (!view.facts.cabling || !is_heard_in_all(*view.facts.cabling)) return list;
  std::vector<const RailEnd*> reported;
  for (const RailEnd& end : view.rails) {
    if (end.is_heard || !end.is_up()) continue;
    std::vector<const RailEnd*> rails = {&end};
    for (const std::size_t peer : end.peers) rails.push_back(&view.rails[peer]);
    const bool reported_there = std::ranges::any_of(rails, [&](const RailEnd* rail) {
      return std::find(reported.begin(), reported.end(), rail) != reported.end();
    });
    if (reported_there) continue;  // of the other end
    reported.push_back(&end);
    list.push_back({.node = end.node->name,
                    .subject = end.name,
                    .what = fmt::format("{} on {} reaches nobody", end.title(), end.node->name),
                    .evidence = fmt::format("{} has a carrier, but no beacon comes by it, while the other half of its "
                                            "port reaches its peer",
                                            end.name),
                    .consequence = "this rail carries nothing",
                    .fix = "look whether the other end is up, and on a switch whether its port is in the same VLAN",
                    .rails = std::move(rails)});
  }
  return list;
}

AdviceList find_one_way_rails(const ClusterView& view) {
  AdviceList list;
  const spec::Cabling& cabling = *view.facts.cabling;
  if (!is_heard_in_all(cabling)) return list;
  const std::vector<spec::Adjacency>& all = cabling.adjacencies;
  for (const spec::Adjacency& adjacency : all) {
    if (adjacency.by.node == adjacency.from.node) continue;
    if (std::find(all.begin(), all.end(), spec::Adjacency{adjacency.from, adjacency.by}) != all.end()) continue;
    list.push_back(
        {.node = node_name(view, adjacency.from),
         .subject = adjacency.from.interface,
         .what = fmt::format("{} does not hear {}", node_name(view, adjacency.from), node_name(view, adjacency.by)),
         .evidence = fmt::format("{} heard {}, but not the other way", describe(view, adjacency.by),
                                 describe(view, adjacency.from)),
         .consequence = "nothing that needs an answer works over this rail",
         .fix = "discover again with --seconds 10; if it stays, try another cable or switch port",
         .rails = rails_of(view, {adjacency.from, adjacency.by})});
  }
  return list;
}

AdviceList find_unknown_topology(const ClusterView& view) {
  if (view.facts.cabling->topology) return {};
  if (const auto pairs = pairs_without_link(view); !pairs.empty()) return {incomplete_mesh(pairs)};
  const std::vector<std::string> joined = joined_nodes(view);
  const std::vector<std::string> idle = idle_ports(view);
  return {{.what = fmt::format("{} nodes are not joined in a way that yoke knows", view.facts.nodes.size()),
           .evidence = joined.empty()
                           ? "no node hears another on a fast interface"
                           : fmt::format("joined are {}; idle: {}", fmt::join(joined, ", "),
                                         idle.empty() ? "no port" : fmt::format("{}", fmt::join(idle, ", "))),
           .consequence = "no cluster file can be written",
           .fix = "two nodes: one cable; three and more: port 0 of each to port 1 of the next and of the last to the "
                  "first (a ring), or all to one switch; four: also a link between each two (a mesh)"}};
}

AdviceList find_link_local_addresses(const ClusterView& view) {
  std::vector<std::string> ends;
  for (const RailEnd& end : view.rails) {
    if (!end.address || !spec::is_link_local(end.address->address)) continue;
    ends.push_back(fmt::format("{} {} {}", end.node->name, end.name, yoke::to_string(*end.address)));
  }
  if (ends.empty()) return {};
  return {{.what = "fast interfaces have addresses that they gave themselves",
           .evidence = fmt::format("{}", fmt::join(ends, ", ")),
           .consequence = "they may change with every boot, and all are in one network",
           .fix = std::string(kNewAddresses)}};
}

AdviceList find_unconfirmed_beacons(const ClusterView& view) {
  AdviceList list;
  for (const spec::UnconfirmedBeacon& beacon : view.facts.cabling->unconfirmed) {
    list.push_back({.node = beacon.hostname,
                    .what = fmt::format("a machine that calls itself {} is on the cable, but ssh does not confirm it",
                                        beacon.hostname),
                    .evidence = beacon.why,
                    .consequence = "it is left out",
                    .fix = beacon.hint.empty() ? "give its address: yoke link discover ADDRESS…" : beacon.hint});
  }
  return list;
}

AdviceList report_unknown_nodes(const ClusterView& view) {
  AdviceList list;
  for (const spec::UnknownNode& heard : view.facts.cabling->unknown_nodes) {
    list.push_back(
        {.node = heard.node,
         .what = fmt::format("another machine, {}, announces itself on the cable", heard.hostname),
         .evidence = fmt::format("{} of {} heard its {}", heard.interface, heard.node, heard.their_interface),
         .consequence = "it is not part of this cluster",
         .fix = heard.address ? fmt::format("if it should be, add its address: {}", yoke::to_string(*heard.address))
                              : "if it should be, add its address"});
  }
  return list;
}

}  // namespace yoke::check
