// What the nodes told, as the ends and sightings that the topology follows from. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/link/discover.h"

namespace yoke::link {
namespace {

spec::LinkEnd end_of(int node, const spec::NetworkInterface& interface) {
  return {.node = node, .port = *interface.port, .rail = *interface.rail, .interface = interface.name};
}

std::vector<std::pair<spec::LinkEnd, const spec::NetworkInterface*>> all_ends(const std::vector<FoundNode>& nodes) {
  std::vector<std::pair<spec::LinkEnd, const spec::NetworkInterface*>> ends;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    for (const spec::NetworkInterface* interface :
         spec::fast_interfaces(nodes[static_cast<std::size_t>(node)].report.machine)) {
      ends.emplace_back(end_of(node, *interface), interface);
    }
  }
  return ends;
}

// A beacon counts where a machine that ssh vouches for says that it has such an interface: what is forged has none.
std::optional<spec::LinkEnd> sender_of(const std::vector<FoundNode>& nodes, const Beacon& beacon) {
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const NodeReport& report = nodes[static_cast<std::size_t>(node)].report;
    const spec::NetworkInterface* interface =
        report.identity == beacon.node ? spec::find_interface(report.machine, beacon.interface) : nullptr;
    if (interface && interface->port && interface->mac == beacon.mac) return end_of(node, *interface);
  }
  return std::nullopt;
}

void add_unique(std::vector<spec::Adjacency>& adjacencies, const spec::Adjacency& adjacency) {
  if (adjacency.by == adjacency.from) return;
  if (std::find(adjacencies.begin(), adjacencies.end(), adjacency) == adjacencies.end())
    adjacencies.push_back(adjacency);
}

bool same_network(const spec::NetworkInterface& a, const spec::NetworkInterface& b) {
  for (const Ipv4Prefix& one : a.addresses) {
    for (const Ipv4Prefix& other : b.addresses) {
      if (one.network() == other.network() && !is_link_local(one)) return true;
    }
  }
  return false;
}

// Whether several of a node's ends are in the network of this one: then only rails of one letter are taken as joined.
bool is_ambiguous(const std::vector<FoundNode>& nodes, int node, const spec::NetworkInterface& interface) {
  int count = 0;
  for (const spec::NetworkInterface* own :
       spec::fast_interfaces(nodes[static_cast<std::size_t>(node)].report.machine)) {
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

std::vector<spec::Adjacency> adjacencies_from_beacons(const std::vector<FoundNode>& nodes) {
  std::vector<spec::Adjacency> adjacencies;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const NodeReport& report = nodes[static_cast<std::size_t>(node)].report;
    for (const HeardBeacon& heard : report.heard) {
      const spec::NetworkInterface* own = spec::find_interface(report.machine, heard.interface);
      const auto sender = sender_of(nodes, heard.beacon);
      if (own && own->port && sender) add_unique(adjacencies, {end_of(node, *own), *sender});
    }
  }
  return adjacencies;
}

std::vector<spec::Adjacency> adjacencies_from_addresses(const std::vector<FoundNode>& nodes) {
  std::vector<spec::Adjacency> adjacencies;
  const auto ends = all_ends(nodes);
  for (const auto& [end, interface] : ends) {
    for (const auto& [other, theirs] : ends) {
      if (end.node == other.node || !interface->carrier || !theirs->carrier || !same_network(*interface, *theirs))
        continue;
      const bool ambiguous = is_ambiguous(nodes, other.node, *interface) || is_ambiguous(nodes, end.node, *theirs);
      if (!ambiguous || end.rail == other.rail) add_unique(adjacencies, {end, other});
    }
  }
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    for (const LldpNeighbour& neighbour : nodes[static_cast<std::size_t>(node)].report.lldp) {
      for (const auto& [other, theirs] : ends) {
        if (!neighbour.port_mac || theirs->mac != *neighbour.port_mac || other.node == node) continue;
        const spec::NetworkInterface* own =
            spec::find_interface(nodes[static_cast<std::size_t>(node)].report.machine, neighbour.interface);
        if (own && own->port) add_unique(adjacencies, {end_of(node, *own), other});
      }
    }
  }
  return adjacencies;
}

std::optional<std::string> switch_name(const std::vector<FoundNode>& nodes) {
  for (const FoundNode& node : nodes) {
    for (const LldpNeighbour& neighbour : node.report.lldp) {
      const spec::NetworkInterface* own = spec::find_interface(node.report.machine, neighbour.interface);
      const bool is_node = std::any_of(nodes.begin(), nodes.end(), [&](const FoundNode& other) {
        return neighbour.system == other.report.machine.hostname;
      });
      if (own && own->port && neighbour.bridge && !is_node) return neighbour.system.value_or("without a name");
    }
  }
  return std::nullopt;
}

std::vector<spec::UnknownNode> find_unknown_nodes(const std::vector<FoundNode>& nodes) {
  std::vector<spec::UnknownNode> unknown_nodes;
  std::set<std::string> reported;
  for (const FoundNode& node : nodes) {
    for (const HeardBeacon& heard : node.report.heard) {
      const Beacon& beacon = heard.beacon;
      const bool known = std::any_of(nodes.begin(), nodes.end(),
                                     [&](const FoundNode& other) { return other.report.identity == beacon.node; });
      if (known || !reported.insert(beacon.node).second) continue;
      unknown_nodes.push_back({.node = node.access.name,
                               .interface = heard.interface,
                               .hostname = beacon.hostname,
                               .their_interface = beacon.interface,
                               .address = beacon.address});
    }
  }
  return unknown_nodes;
}

}  // namespace yoke::link
