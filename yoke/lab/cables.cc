#include "yoke/lab/cables.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/spec/mesh.h"

namespace yoke::lab {
namespace {

Ipv4Prefix subnet(int number) {
  return {{(192U << 24) | (168U << 16) | (static_cast<std::uint32_t>(100 + number) << 8)}, 24};
}

Ipv4Prefix address_in(const Ipv4Prefix& network, int node) {
  return {network.host(static_cast<std::uint32_t>(node)), network.length};
}

LabInterface& interface_of(LabLayout& layout, int node, int port, std::string_view rail) {
  for (LabInterface& interface : layout.nodes[static_cast<std::size_t>(node - 1)].interfaces) {
    if (interface.port == port && interface.rail == rail) return interface;
  }
  throw Error(ErrorCode::kInternal, fmt::format("node {} has no port {} half {}", node, port, rail));
}

// The rails that each port has, from the first node's interfaces.
std::vector<std::string> rails_of(const LabLayout& layout, int port) {
  std::vector<std::string> rails;
  for (const LabInterface& interface : layout.nodes.front().interfaces) {
    if (interface.port == port) rails.push_back(interface.rail);
  }
  return rails;
}

void join(LabLayout& layout, int node_a, int port_a, int node_b, int port_b, std::string_view rail, int number) {
  LabInterface& a = interface_of(layout, node_a, port_a, rail);
  LabInterface& b = interface_of(layout, node_b, port_b, rail);
  a.address = address_in(subnet(number), node_a);
  b.address = address_in(subnet(number), node_b);
  layout.cables.push_back({node_a, a.name, node_b, b.name});
  layout.subnets.push_back(subnet(number));
}

void cable_directly(LabLayout& layout, int ports) {
  int number = 0;
  for (int port = 0; port < ports; ++port) {
    for (const std::string& rail : rails_of(layout, port)) join(layout, 1, port, 2, port, rail, number++);
  }
}

void cable_to_switch(LabLayout& layout, int ports) {
  int number = 0;
  for (int port = 0; port < ports; ++port) {
    for (const std::string& rail : rails_of(layout, port)) {
      for (const LabNode& node : layout.nodes) {
        LabInterface& interface = interface_of(layout, node.number, port, rail);
        interface.address = address_in(subnet(number), node.number);
        layout.cables.push_back({node.number, interface.name, 0, fmt::format("fab{}", number)});
      }
      layout.subnets.push_back(subnet(number));
      ++number;
    }
  }
}

// Port 0 of each node to port 1 of the next, as NVIDIA's three-Spark guide cables it.
void cable_as_ring(LabLayout& layout) {
  const int nodes = static_cast<int>(layout.nodes.size());
  for (int node = 1; node <= nodes; ++node) {
    int number = (node - 1) * 10;
    for (const std::string& rail : rails_of(layout, 0)) join(layout, node, 0, node % nodes + 1, 1, rail, number++);
  }
}

// Breakout optics make a link of each half of a port. The first end of each link numbers its subnet, as 'yoke link
// discover' proposes them.
void cable_as_mesh(LabLayout& layout) {
  int number = 0;
  for (int node = 0; node < spec::kMeshNodes; ++node) {
    for (int half = 0; half < spec::kMeshHalves; ++half) {
      const int peer = spec::mesh_peer(node, half);
      if (peer < node) continue;
      const int port = half / 2;
      const std::string rail = rails_of(layout, port).at(static_cast<std::size_t>(half % 2));
      join(layout, node + 1, port, peer + 1, port, rail, number++);
    }
  }
}

// The addresses that a node of a mesh has on its other links are reached over the link to it.
void route_mesh(LabLayout& layout) {
  for (const LabCable& cable : layout.cables) {
    const auto route = [&](int from, int to, const std::string& to_interface) {
      const std::vector<LabInterface>& theirs = layout.nodes[static_cast<std::size_t>(to - 1)].interfaces;
      const auto via =
          std::find_if(theirs.begin(), theirs.end(), [&](const auto& i) { return i.name == to_interface; });
      for (const LabInterface& target : theirs) {
        if (!target.address || target.name == to_interface) continue;
        layout.nodes[static_cast<std::size_t>(from - 1)].routes.push_back(
            {{target.address->address, 32}, via->address->address});
      }
    };
    route(cable.node_a, cable.node_b, cable.interface_b);
    route(cable.node_b, cable.node_a, cable.interface_a);
  }
}

// In a ring a node shares no subnet with most addresses of the others: they are reached over the shorter way round,
// by the same rail.
void route_ring(LabLayout& layout) {
  const int nodes = static_cast<int>(layout.nodes.size());
  for (int node = 1; node <= nodes; ++node) {
    for (int other = 1; other <= nodes; ++other) {
      if (other == node) continue;
      const int steps = (other - node + nodes) % nodes;
      const bool forward = steps <= nodes - steps;
      const int next = forward ? node % nodes + 1 : (node + nodes - 2) % nodes + 1;
      for (const LabInterface& target : layout.nodes[static_cast<std::size_t>(other - 1)].interfaces) {
        const Ipv4Prefix via = *interface_of(layout, next, forward ? 1 : 0, target.rail).address;
        if (!target.address || target.address->network() == via.network()) continue;
        layout.nodes[static_cast<std::size_t>(node - 1)].routes.push_back({{target.address->address, 32}, via.address});
      }
    }
  }
}

}  // namespace

void lay_cables(LabLayout& layout, int ports) {
  switch (layout.topology) {
    case spec::Topology::kDirect:
      cable_directly(layout, ports);
      break;
    case spec::Topology::kSwitch:
      cable_to_switch(layout, ports);
      break;
    case spec::Topology::kRing:
      cable_as_ring(layout);
      route_ring(layout);
      break;
    case spec::Topology::kMesh:
      cable_as_mesh(layout);
      route_mesh(layout);
      break;
  }
}

}  // namespace yoke::lab
