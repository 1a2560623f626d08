#include "yoke/lab/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"
#include "yoke/lab/hardware.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke::lab {
namespace {

constexpr int kMinNodes = 2;
constexpr Bytes kMinMemory{64LL << 20};  // sshd, its sessions and the node's tmpfs need about 30 MiB

[[noreturn]] void refuse(std::string message, std::string hint) {
  throw Error(ErrorCode::kUsage, std::move(message), std::move(hint));
}

spec::Topology check_options(const LabOptions& options) {
  if (!spec::is_plain_name(options.name) || options.name.size() > 32) {
    refuse(fmt::format("'{}' cannot be a lab's name", printable(options.name, 40)),
           "use letters, digits, '-', '_' and '.', at most 32, with a letter or digit first");
  }
  if (options.nodes < kMinNodes || options.nodes > kMaxLabNodes) {
    refuse(fmt::format("a lab has {} to {} nodes, not {}", kMinNodes, kMaxLabNodes, options.nodes),
           "--nodes 2 is usual");
  }
  if ((options.rail_rate && options.rail_rate->value < 1e6) || options.management_rate.value < 1e6) {
    refuse("a link needs a rate of at least 1Mb/s", "--rail-rate 2Gb/s --management-rate 1Gb/s are usual");
  }
  if (options.memory < kMinMemory) {
    refuse(fmt::format("a node cannot live with {} of memory", yoke::to_string(options.memory)),
           fmt::format("--memory {} is the least, 512MiB usual", exact(kMinMemory)));
  }
  const spec::Topology topology =
      options.topology.value_or(options.nodes == 2 ? spec::Topology::kDirect : spec::Topology::kSwitch);
  if (topology == spec::Topology::kDirect && options.nodes != 2) {
    refuse(fmt::format("{} nodes cannot be cabled directly", options.nodes),
           "use --topology ring or --topology switch");
  }
  if (options.cables < 1 || options.cables > 2 || (options.cables == 2 && options.hardware == "b300") ||
      (options.cables == 2 && topology == spec::Topology::kRing)) {
    refuse(fmt::format("a lab cannot have {} cables for each node here", options.cables),
           "--cables 1 or 2, for Sparks that are cabled directly or to a switch");
  }
  if (topology == spec::Topology::kRing && options.nodes < 3)
    refuse("a ring has at least three nodes", "use --nodes 3");
  if (topology == spec::Topology::kRing && options.hardware == "b300") {
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

LabLayout lay_out_lab(const LabOptions& options) {
  const spec::Topology topology = check_options(options);
  LabLayout layout{.name = options.name,
                   .hardware = options.hardware,
                   .topology = topology,
                   .rail_rate = options.rail_rate,
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
      node.interfaces.push_back({.name = port.interface, .mac = port.mac, .port = port.port, .rail = port.rail});
    }
    layout.nodes.push_back(std::move(node));
  }
  const int ports = options.hardware == "b300" ? 8 : options.cables;
  switch (topology) {
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
  }
  return layout;
}

spec::Cluster lab_cluster(const LabLayout& layout) {
  spec::Cluster cluster{.name = layout.name, .lab = layout.name};
  if (layout.hardware != "none") cluster.hardware = layout.hardware;
  for (const LabNode& node : layout.nodes) {
    spec::ClusterNode entry{.name = node.name,
                            .address = yoke::to_string(node.management.address),
                            .user = layout.plain ? std::nullopt : std::optional<std::string>("root"),
                            .port = layout.ssh_port};
    for (const LabInterface& interface : node.interfaces) {
      if (interface.address && !layout.bare) entry.rails.push_back({interface.name, *interface.address});
    }
    cluster.nodes.push_back(std::move(entry));
  }
  cluster.fabric = spec::Fabric{.topology = layout.topology,
                                .mtu = kLabMtu,
                                .subnets = layout.subnets,
                                .rail_rate = layout.rail_rate,
                                .management_rate = layout.management_rate};
  if (layout.plain) cluster.fabric->rail_rate = cluster.fabric->management_rate = std::nullopt;  // nothing is shaped
  return cluster;
}

std::vector<SharedNicLink> shared_nic_links(const LabLayout& layout, const LabNode& node) {
  std::vector<SharedNicLink> links;
  if (layout.hardware != "spark" || layout.plain) return links;
  for (const LabInterface& interface : node.interfaces) {
    if (!interface.address) continue;  // no cable
    const auto same = [&](const SharedNicLink& link) { return link.rail == interface.rail; };
    const auto known = std::find_if(links.begin(), links.end(), same);
    if (known == links.end()) {
      links.push_back({interface.rail, {interface.name}});
    } else {
      known->interfaces.push_back(interface.name);
    }
  }
  std::erase_if(links, [](const SharedNicLink& link) { return link.interfaces.size() < 2; });
  return links;
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

template <class Visitor>
void visit_fields(Visitor& visit, LabInterface& interface) {
  visit.required("name", interface.name);
  visit.required("mac", interface.mac);
  visit.required("port", interface.port);
  visit.required("rail", interface.rail);
  visit.optional("address", interface.address);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabRoute& route) {
  visit.required("to", route.to);
  visit.required("via", route.via);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabNode& node) {
  visit.required("number", node.number);
  visit.required("name", node.name);
  visit.required("management", node.management);
  visit.optional("interfaces", node.interfaces);
  visit.optional("routes", node.routes);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabCable& cable) {
  visit.required("node_a", cable.node_a);
  visit.required("interface_a", cable.interface_a);
  visit.required("node_b", cable.node_b);
  visit.required("interface_b", cable.interface_b);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabLayout& layout) {
  visit.required("name", layout.name);
  visit.required("hardware", layout.hardware);
  visit.required("topology", layout.topology);
  visit.optional("rail_rate", layout.rail_rate);
  visit.required("management_rate", layout.management_rate);
  visit.required("management_interface", layout.management_interface);
  visit.required("memory", layout.memory);
  visit.required("bare", layout.bare);
  visit.optional("plain", layout.plain);
  visit.optional("ssh_port", layout.ssh_port);
  visit.required("nodes", layout.nodes);
  visit.optional("cables", layout.cables);
  visit.optional("subnets", layout.subnets);
}

Document to_json(const LabLayout& layout) { return write_fields(layout); }
void from_json(const Document& document, LabLayout& layout) { read_fields(document, layout); }

}  // namespace yoke::lab
