#include "yoke/link/topology_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace yoke {
namespace {

std::string state_of(const TopologyEnd& end) {
  if (!end.up) return "is switched off";
  return end.carrier ? "has a carrier" : "has no carrier";
}

std::string advice_for(const TopologyEnd& end) {
  if (!end.up) return fmt::format("ip link set {} up, then discover again", end.interface);
  if (!end.carrier) return "push the cable in at both ends, or try another; then discover again";
  return "look whether the other end is up, and on a switch whether its port is in the same VLAN";
}

}  // namespace

std::string TopologyFindings::describe(const LinkEnd& end) const {
  return fmt::format("{} port {} half {} ({})", name(end.node), end.port, end.half, end.interface);
}

bool TopologyFindings::is_joined(const LinkEnd& end) const {
  return std::any_of(segments.begin(), segments.end(), [&](const LinkSegment& segment) {
    return std::binary_search(segment.ends.begin(), segment.ends.end(), end);
  });
}

void TopologyFindings::tell_loops(const std::vector<LinkSegment>& loops, std::vector<Finding>& findings) const {
  for (const LinkSegment& loop : loops) {
    std::vector<std::string> ends;
    for (const LinkEnd& end : loop.ends) ends.push_back(describe(end));
    findings.push_back({.rule = "cable-loop",
                        .severity = Severity::kWarning,
                        .node = name(loop.ends.front().node),
                        .subject = loop.ends.front().interface,
                        .what = fmt::format("a cable of {} leads back to itself", name(loop.ends.front().node)),
                        .evidence = fmt::format("its own beacon came back: {}", fmt::join(ends, " to ")),
                        .consequence = "this cable joins no nodes",
                        .fix = "put one end of the cable into another node"});
  }
}

void TopologyFindings::tell_crossed(std::vector<Finding>& findings) const {
  for (const LinkSegment& segment : segments) {
    const LinkEnd& a = segment.ends.front();
    const LinkEnd& b = segment.ends.back();
    if (a.half == b.half) continue;
    findings.push_back(
        {.rule = "halves-crossed",
         .severity = Severity::kWarning,
         .node = name(a.node),
         .subject = a.interface,
         .what = fmt::format("half {} of {} is joined to half {} of {}", a.half, name(a.node), b.half, name(b.node)),
         .evidence = fmt::format("{} hears {}", describe(a), describe(b)),
         .consequence = "it works, but tools that pair interfaces by name pair the wrong ones",
         .fix = "use a plain cable between the two ports, not a breakout"});
  }
}

void TopologyFindings::tell_silent_nodes(std::vector<Finding>& findings) const {
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const bool joined =
        std::any_of(segments.begin(), segments.end(), [&](const LinkSegment& segment) { return segment.joins(node); });
    if (joined) continue;
    std::vector<std::string> states;
    for (const TopologyEnd& end : nodes[static_cast<std::size_t>(node)].ends) {
      states.push_back(fmt::format("{} {}", end.interface, state_of(end)));
    }
    findings.push_back(
        {.rule = "node-silent",
         .severity = Severity::kFault,
         .node = name(node),
         .what = fmt::format("no fast interface of {} reaches another node", name(node)),
         .evidence = states.empty() ? "it has no fast interface" : fmt::format("{}", fmt::join(states, ", ")),
         .consequence = "all its traffic would go over the management network",
         .fix = "push the cable in at both ends; on a switch, enable the port; then discover again"});
  }
}

// A port of which one half is joined has a good cable, so its other halves must be joined too.
void TopologyFindings::tell_silent_halves(std::vector<Finding>& findings) const {
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const std::vector<TopologyEnd>& ends = nodes[static_cast<std::size_t>(node)].ends;
    for (const TopologyEnd& end : ends) {
      const LinkEnd silent{node, end.port, end.half, end.interface};
      if (is_joined(silent)) continue;
      const auto twin = std::find_if(ends.begin(), ends.end(), [&](const TopologyEnd& other) {
        return other.port == end.port && is_joined({node, other.port, other.half, other.interface});
      });
      if (twin == ends.end()) continue;
      findings.push_back({.rule = end.up && end.carrier ? "half-silent" : "half-down",
                          .severity = Severity::kFault,
                          .node = name(node),
                          .subject = end.interface,
                          .what = fmt::format("half {} of port {} reaches nobody", end.half, end.port),
                          .evidence = fmt::format("{} {}, while {} on the same port reaches its peer", end.interface,
                                                  state_of(end), twin->interface),
                          .consequence = "this cable carries half of what it could",
                          .fix = advice_for(end)});
    }
  }
}

void TopologyFindings::tell_one_way(const std::vector<Sighting>& sightings, std::vector<Finding>& findings) const {
  for (const Sighting& sighting : sightings) {
    if (sighting.by.node == sighting.from.node) continue;
    if (std::find(sightings.begin(), sightings.end(), Sighting{sighting.from, sighting.by}) != sightings.end())
      continue;
    findings.push_back(
        {.rule = "one-way",
         .severity = Severity::kFault,
         .node = name(sighting.from.node),
         .subject = sighting.from.interface,
         .what = fmt::format("{} does not hear {}", name(sighting.from.node), name(sighting.by.node)),
         .evidence = fmt::format("{} heard {}, but not the other way", describe(sighting.by), describe(sighting.from)),
         .consequence = "nothing that needs an answer works over this half",
         .fix = "discover again with --seconds 10; if it stays, try another cable or switch port"});
  }
}

void TopologyFindings::tell_unknown(std::vector<Finding>& findings) const {
  std::vector<std::string> cables;
  for (const LinkSegment& segment : segments) {
    std::vector<std::string> names;
    for (const LinkEnd& end : segment.ends) {
      if (names.empty() || names.back() != name(end.node)) names.push_back(name(end.node));
    }
    const std::string cable = fmt::format("{}", fmt::join(names, "-"));
    if (std::find(cables.begin(), cables.end(), cable) == cables.end()) cables.push_back(cable);
  }
  findings.push_back({.rule = "topology-unknown",
                      .severity = Severity::kFault,
                      .node = std::nullopt,
                      .what = fmt::format("{} nodes are not joined in a way that yoke knows", nodes.size()),
                      .evidence = cables.empty() ? "no node hears another on a fast interface"
                                                 : fmt::format("joined are {}", fmt::join(cables, ", ")),
                      .consequence = "no cluster file can be written",
                      .fix = "two nodes: one cable; three and more: port 0 of each to port 1 of the next and of the "
                             "last to the first (a ring), or all to one switch"});
}

}  // namespace yoke
