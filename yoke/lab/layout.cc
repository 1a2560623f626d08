#include "yoke/lab/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/lab/hardware.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke {
namespace {

constexpr int kNodesLeast = 2;
constexpr Bytes kMemoryLeast{64LL << 20};  // sshd, its sessions and the node's tmpfs need about 30 MiB

[[noreturn]] void refuse(std::string message, std::string hint) {
  throw Error(ErrorCode::kUsage, std::move(message), std::move(hint));
}

Topology check_options(const LabOptions& options) {
  if (!is_plain_name(options.name) || options.name.size() > 32) {
    refuse(fmt::format("'{}' cannot be a lab's name", printable(options.name, 40)),
           "use letters, digits, '-', '_' and '.', at most 32, with a letter or digit first");
  }
  if (options.nodes < kNodesLeast || options.nodes > kLabNodesMost) {
    refuse(fmt::format("a lab has {} to {} nodes, not {}", kNodesLeast, kLabNodesMost, options.nodes),
           "--nodes 2 is usual");
  }
  if (options.half_rate.value < 1e6 || options.management_rate.value < 1e6) {
    refuse("a link needs a rate of at least 1Mb/s", "--half-rate 2Gb/s --management-rate 1Gb/s are usual");
  }
  if (options.memory < kMemoryLeast) {
    refuse(fmt::format("a node cannot live with {} of memory", to_string(options.memory)),
           fmt::format("--memory {} is the least, 512MiB usual", exact(kMemoryLeast)));
  }
  const Topology topology = options.topology.value_or(options.nodes == 2 ? Topology::kDirect : Topology::kSwitch);
  if (topology == Topology::kDirect && options.nodes != 2) {
    refuse(fmt::format("{} nodes cannot be cabled directly", options.nodes),
           "use --topology ring or --topology switch");
  }
  if (topology == Topology::kRing && options.nodes < 3) refuse("a ring has at least three nodes", "use --nodes 3");
  if (topology == Topology::kRing && options.hardware == "b300") {
    refuse("servers with eight NICs are not cabled as a ring", "use --topology switch");
  }
  return topology;
}

Ipv4Prefix subnet(int number) {
  return {{(192U << 24) | (168U << 16) | (static_cast<std::uint32_t>(100 + number) << 8)}, 24};
}

Ipv4Prefix address_in(const Ipv4Prefix& network, int node) {
  return {network.host(static_cast<std::uint32_t>(node)), network.length};
}

LabInterface& interface_of(LabLayout& layout, int node, int port, std::string_view half) {
  for (LabInterface& interface : layout.nodes[static_cast<std::size_t>(node - 1)].interfaces) {
    if (interface.port == port && interface.half == half) return interface;
  }
  throw Error(ErrorCode::kInternal, fmt::format("node {} has no port {} half {}", node, port, half));
}

// The halves that each port has, from the first node's interfaces.
std::vector<std::string> halves_of(const LabLayout& layout, int port) {
  std::vector<std::string> halves;
  for (const LabInterface& interface : layout.nodes.front().interfaces) {
    if (interface.port == port) halves.push_back(interface.half);
  }
  return halves;
}

void join(LabLayout& layout, int node_a, int port_a, int node_b, int port_b, std::string_view half, int number) {
  LabInterface& a = interface_of(layout, node_a, port_a, half);
  LabInterface& b = interface_of(layout, node_b, port_b, half);
  a.address = address_in(subnet(number), node_a);
  b.address = address_in(subnet(number), node_b);
  layout.cables.push_back({node_a, a.name, node_b, b.name});
  layout.subnets.push_back(subnet(number));
}

void cable_directly(LabLayout& layout, int ports) {
  int number = 0;
  for (int port = 0; port < ports; ++port) {
    for (const std::string& half : halves_of(layout, port)) join(layout, 1, port, 2, port, half, number++);
  }
}

void cable_to_switch(LabLayout& layout, int ports) {
  int number = 0;
  for (int port = 0; port < ports; ++port) {
    for (const std::string& half : halves_of(layout, port)) {
      for (const LabNode& node : layout.nodes) {
        LabInterface& interface = interface_of(layout, node.number, port, half);
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
    for (const std::string& half : halves_of(layout, 0)) join(layout, node, 0, node % nodes + 1, 1, half, number++);
  }
}

// In a ring a node shares no subnet with most addresses of the others: they are reached over the shorter way round,
// by the same half.
void route_ring(LabLayout& layout) {
  const int nodes = static_cast<int>(layout.nodes.size());
  for (int node = 1; node <= nodes; ++node) {
    for (int other = 1; other <= nodes; ++other) {
      if (other == node) continue;
      const int steps = (other - node + nodes) % nodes;
      const bool forward = steps <= nodes - steps;
      const int next = forward ? node % nodes + 1 : (node + nodes - 2) % nodes + 1;
      for (const LabInterface& target : layout.nodes[static_cast<std::size_t>(other - 1)].interfaces) {
        const Ipv4Prefix via = *interface_of(layout, next, forward ? 1 : 0, target.half).address;
        if (!target.address || target.address->network() == via.network()) continue;
        layout.nodes[static_cast<std::size_t>(node - 1)].routes.push_back({{target.address->address, 32}, via.address});
      }
    }
  }
}

}  // namespace

LabLayout lay_out_lab(const LabOptions& options) {
  const Topology topology = check_options(options);
  LabLayout layout{.name = options.name,
                   .hardware = options.hardware,
                   .topology = topology,
                   .half_rate = options.unshaped ? std::nullopt : std::optional(options.half_rate),
                   .management_rate = options.management_rate,
                   .memory = options.memory,
                   .bare = options.bare};
  const std::string prefix = options.hardware == "none" ? "node" : options.hardware;
  // Without a hardware tree the interfaces are still those of a Spark.
  const std::string machine = options.hardware == "none" ? "spark" : options.hardware;
  layout.management_interface = lab_management_port(lab_hardware({.machine = machine})).value().interface;
  for (int number = 1; number <= options.nodes; ++number) {
    LabNode node{.number = number, .name = fmt::format("{}-{}", prefix, number)};
    node.management = {{(10U << 24) | (77U << 16) | static_cast<std::uint32_t>(number)}, 24};
    for (const LabPort& port : lab_ports(lab_hardware({.machine = machine, .node = number}))) {
      node.interfaces.push_back({.name = port.interface, .mac = port.mac, .port = port.port, .half = port.half});
    }
    layout.nodes.push_back(std::move(node));
  }
  const int ports = options.hardware == "b300" ? 8 : 1;
  switch (topology) {
    case Topology::kDirect:
      cable_directly(layout, ports);
      break;
    case Topology::kSwitch:
      cable_to_switch(layout, ports);
      break;
    case Topology::kRing:
      cable_as_ring(layout);
      route_ring(layout);
      break;
  }
  return layout;
}

Cluster lab_cluster(const LabLayout& layout) {
  Cluster cluster{.name = layout.name, .lab = layout.name};
  if (layout.hardware != "none") cluster.hardware = layout.hardware;
  for (const LabNode& node : layout.nodes) {
    ClusterNode entry{.name = node.name,
                      .address = to_string(node.management.address),
                      .user = layout.plain ? std::nullopt : std::optional<std::string>("root"),
                      .port = layout.ssh_port};
    for (const LabInterface& interface : node.interfaces) {
      if (interface.address && !layout.bare) entry.halves.push_back({interface.name, *interface.address});
    }
    cluster.nodes.push_back(std::move(entry));
  }
  cluster.fabric = Fabric{.topology = layout.topology,
                          .mtu = kLabMtu,
                          .subnets = layout.subnets,
                          .half_rate = layout.half_rate,
                          .management_rate = layout.management_rate};
  if (layout.plain) cluster.fabric->half_rate = cluster.fabric->management_rate = std::nullopt;  // nothing is shaped
  return cluster;
}

const LabNode& find_lab_node(const LabLayout& layout, std::string_view name_or_number) {
  std::vector<std::string> names;
  for (const LabNode& node : layout.nodes) {
    if (node.name == name_or_number || fmt::format("{}", node.number) == name_or_number) return node;
    names.push_back(node.name);
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("lab '{}' has no node '{}'", layout.name, printable(name_or_number, 40)),
              suggest(name_or_number, names, "nodes"));
}

std::optional<std::pair<int, std::string>> find_peer(const LabLayout& layout, int node, std::string_view interface) {
  for (const LabCable& cable : layout.cables) {
    if (cable.node_b == 0) continue;
    if (cable.node_a == node && cable.interface_a == interface) return std::pair(cable.node_b, cable.interface_b);
    if (cable.node_b == node && cable.interface_b == interface) return std::pair(cable.node_a, cable.interface_a);
  }
  return std::nullopt;
}

}  // namespace yoke
