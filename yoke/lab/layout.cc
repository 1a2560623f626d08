#include "yoke/lab/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"
#include "yoke/lab/cables.h"
#include "yoke/lab/hardware.h"
#include "yoke/spec/cluster_rules.h"
#include "yoke/spec/mesh.h"

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
           options.nodes == spec::kMeshNodes ? "use --topology ring, --topology mesh or --topology switch"
                                             : "use --topology ring or --topology switch");
  }
  if (options.cables < 1 || options.cables > 2 || (options.cables == 2 && options.hardware == "b300") ||
      (options.cables == 2 && spec::is_ring_or_mesh(topology))) {
    refuse(fmt::format("a lab cannot have {} cables for each node here", options.cables),
           "--cables 1 or 2, for Sparks that are cabled directly or to a switch");
  }
  if (topology == spec::Topology::kRing && options.nodes < 3)
    refuse("a ring has at least three nodes", "use --nodes 3");
  if (topology == spec::Topology::kMesh && options.nodes != spec::kMeshNodes) {
    refuse(fmt::format("a mesh has four nodes, not {}", options.nodes), "use --nodes 4");
  }
  if (spec::is_ring_or_mesh(topology) && options.hardware == "b300") {
    refuse(fmt::format("servers with eight NICs are not cabled as a {}", spec::to_string(topology)),
           "use --topology switch");
  }
  return topology;
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
  lay_cables(layout, ports);
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
