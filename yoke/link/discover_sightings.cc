// What the nodes told, as the ends and sightings that the topology follows from. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/link/discover.h"

namespace yoke {
namespace {

LinkEnd end_of(int node, const NetworkInterface& interface) {
  return {.node = node, .port = *interface.port, .half = *interface.half, .interface = interface.name};
}

std::vector<std::pair<LinkEnd, const NetworkInterface*>> all_ends(const std::vector<FoundNode>& nodes) {
  std::vector<std::pair<LinkEnd, const NetworkInterface*>> ends;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    for (const NetworkInterface* interface : fast_interfaces(nodes[static_cast<std::size_t>(node)].report.machine)) {
      ends.emplace_back(end_of(node, *interface), interface);
    }
  }
  return ends;
}

// A beacon counts where a machine that ssh vouches for says that it has such an interface: what is forged has none.
std::optional<LinkEnd> sender_of(const std::vector<FoundNode>& nodes, const Beacon& beacon) {
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const NodeReport& report = nodes[static_cast<std::size_t>(node)].report;
    const NetworkInterface* interface =
        report.identity == beacon.node ? find_interface(report.machine, beacon.interface) : nullptr;
    if (interface && interface->port && interface->mac == beacon.mac) return end_of(node, *interface);
  }
  return std::nullopt;
}

void add_unique(std::vector<Sighting>& sightings, const Sighting& sighting) {
  if (sighting.by == sighting.from) return;
  if (std::find(sightings.begin(), sightings.end(), sighting) == sightings.end()) sightings.push_back(sighting);
}

bool same_network(const NetworkInterface& a, const NetworkInterface& b) {
  for (const Ipv4Prefix& one : a.addresses) {
    for (const Ipv4Prefix& other : b.addresses) {
      if (one.network() == other.network() && !is_link_local(one)) return true;
    }
  }
  return false;
}

// Whether several of a node's ends are in the network of this one: then only halves of one letter are taken as joined.
bool is_ambiguous(const std::vector<FoundNode>& nodes, int node, const NetworkInterface& interface) {
  int count = 0;
  for (const NetworkInterface* own : fast_interfaces(nodes[static_cast<std::size_t>(node)].report.machine)) {
    if (same_network(*own, interface)) ++count;
  }
  return count > 1;
}

}  // namespace

void name_nodes(std::vector<FoundNode>& nodes) {
  std::set<std::string> taken;
  for (FoundNode& node : nodes) {
    const bool named = node.access.name != node.access.address && !node.access.name.empty();  // by a cluster file
    const std::string base = named ? node.access.name : node_name(node.report.machine.hostname);
    std::string name = base;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}", base.substr(0, 56), i);
    node.access.name = name;
  }
}

std::vector<Sighting> sightings_from_beacons(const std::vector<FoundNode>& nodes) {
  std::vector<Sighting> sightings;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const NodeReport& report = nodes[static_cast<std::size_t>(node)].report;
    for (const HeardBeacon& heard : report.heard) {
      const NetworkInterface* own = find_interface(report.machine, heard.interface);
      const auto sender = sender_of(nodes, heard.beacon);
      if (own && own->port && sender) add_unique(sightings, {end_of(node, *own), *sender});
    }
  }
  return sightings;
}

std::vector<Sighting> sightings_from_addresses(const std::vector<FoundNode>& nodes) {
  std::vector<Sighting> sightings;
  const auto ends = all_ends(nodes);
  for (const auto& [end, interface] : ends) {
    for (const auto& [other, theirs] : ends) {
      if (end.node == other.node || !interface->carrier || !theirs->carrier || !same_network(*interface, *theirs))
        continue;
      const bool ambiguous = is_ambiguous(nodes, other.node, *interface) || is_ambiguous(nodes, end.node, *theirs);
      if (!ambiguous || end.half == other.half) add_unique(sightings, {end, other});
    }
  }
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    for (const LldpNeighbour& neighbour : nodes[static_cast<std::size_t>(node)].report.lldp) {
      for (const auto& [other, theirs] : ends) {
        if (!neighbour.port_mac || theirs->mac != *neighbour.port_mac || other.node == node) continue;
        const NetworkInterface* own =
            find_interface(nodes[static_cast<std::size_t>(node)].report.machine, neighbour.interface);
        if (own && own->port) add_unique(sightings, {end_of(node, *own), other});
      }
    }
  }
  return sightings;
}

std::optional<std::string> switch_name(const std::vector<FoundNode>& nodes) {
  for (const FoundNode& node : nodes) {
    for (const LldpNeighbour& neighbour : node.report.lldp) {
      const NetworkInterface* own = find_interface(node.report.machine, neighbour.interface);
      const bool is_node = std::any_of(nodes.begin(), nodes.end(), [&](const FoundNode& other) {
        return neighbour.system == other.report.machine.hostname;
      });
      if (own && own->port && neighbour.bridge && !is_node) return neighbour.system.value_or("without a name");
    }
  }
  return std::nullopt;
}

std::vector<HeardStranger> find_strangers(const std::vector<FoundNode>& nodes) {
  std::vector<HeardStranger> strangers;
  std::set<std::string> told;
  for (const FoundNode& node : nodes) {
    for (const HeardBeacon& heard : node.report.heard) {
      const Beacon& beacon = heard.beacon;
      const bool known = std::any_of(nodes.begin(), nodes.end(),
                                     [&](const FoundNode& other) { return other.report.identity == beacon.node; });
      if (known || !told.insert(beacon.node).second) continue;
      strangers.push_back({.node = node.access.name,
                           .interface = heard.interface,
                           .hostname = beacon.hostname,
                           .their_interface = beacon.interface,
                           .address = beacon.address});
    }
  }
  return strangers;
}

}  // namespace yoke
