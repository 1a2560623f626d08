#include "yoke/spec/cluster_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/spec/hardware.h"
#include "yoke/spec/mesh.h"

namespace yoke::spec {
namespace {

constexpr std::size_t kMaxNodes = 1024;
constexpr int kMinMtu = 1280;
constexpr int kMaxMtu = 9978;  // ConnectX's largest

// The place of a field to name in an error: its own line, or where it is missing the line of what should hold it.
std::string where(const Document& document, std::initializer_list<std::string_view> keys) {
  const Document* at = &document;
  for (const std::string_view key : keys) {
    if (const Document* next = at->find(key)) at = next;
  }
  return at->where;
}

std::string where_node(const Document& document, std::size_t index, std::string_view key) {
  const Document* nodes = document.find("nodes");
  if (!nodes || index >= nodes->items.size()) return document.where;
  return where(nodes->items[index], {key});
}

[[noreturn]] void refuse(const std::string& place, std::string_view what, std::string hint) {
  throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", place, what), std::move(hint));
}

void check_name(const std::string& place, std::string_view what, std::string_view name) {
  if (is_plain_name(name)) return;
  refuse(place, fmt::format("'{}' cannot be {}", printable(name, 70), what),
         "use letters, digits, '-', '_' and '.', at most 63, with a letter or digit first");
}

// A host name or an IPv4 address. Nothing that starts with '-': it would be an option to ssh.
bool is_address(std::string_view text) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
  return !text.empty() && text.size() <= 253 && text.front() != '-' &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

void check_nodes(const Cluster& cluster, const Document& document) {
  if (cluster.nodes.empty()) {
    refuse(where(document, {"nodes"}), "there are no nodes",
           "list at least one: - { name: spark-1, address: 192.168.1.21 }");
  }
  if (cluster.nodes.size() > kMaxNodes)
    refuse(where(document, {"nodes"}), fmt::format("there are more than {} nodes", kMaxNodes), "");
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const ClusterNode& node = cluster.nodes[i];
    check_name(where_node(document, i, "name"), "a node's name", node.name);
    if (node.address.find(':') != std::string::npos) {
      refuse(where_node(document, i, "address"),
             fmt::format("'{}' is no IPv4 address, and others are not supported", printable(node.address, 70)),
             "give the IPv4 address or host name that ssh reaches; the port has a key of its own");
    }
    const bool only_digits = node.address.find_first_not_of("0123456789.") == std::string::npos;
    const auto numbers = parse_ipv4(node.address);
    if (!is_address(node.address) || (only_digits && (!numbers || numbers->value == 0))) {
      refuse(where_node(document, i, "address"), fmt::format("'{}' is no address", printable(node.address, 70)),
             "give the host name or IPv4 address that ssh reaches");
    }
    if (node.user) check_name(where_node(document, i, "user"), "a user's name", *node.user);
    if (node.port < 1 || node.port > 65535) {
      refuse(where_node(document, i, "port"), fmt::format("{} is no port", node.port), "ports go from 1 to 65535");
    }
  }
}

// Names of hosts are the same in any case, and with a dot at their end.
std::string plain_host(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::string plain(name);
  std::transform(plain.begin(), plain.end(), plain.begin(), [](unsigned char c) { return std::tolower(c); });
  return plain;
}

void check_nodes_differ(const Cluster& cluster, const Document& document) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const ClusterNode& a = cluster.nodes[j];
      const ClusterNode& b = cluster.nodes[i];
      if (a.name == b.name) {
        refuse(where_node(document, i, "name"), fmt::format("there are two nodes named '{}'", a.name), "rename one");
      }
      if (plain_host(a.address) == plain_host(b.address) && a.port == b.port) {
        refuse(where_node(document, i, "address"),
               fmt::format("nodes '{}' and '{}' have the same address {}", a.name, b.name, a.address), "correct one");
      }
    }
  }
}

// The network's own address or that of all in it, which no machine can have.
bool is_for_nobody(const Ipv4Prefix& address) {
  if (address.length >= 31) return false;
  const std::uint32_t hosts = ~std::uint32_t{0} >> address.length;
  return (address.address.value & hosts) == 0 || (address.address.value & hosts) == hosts;
}

void check_rails(const Cluster& cluster, const Document& document) {
  std::vector<std::pair<Ipv4, std::string>> seen;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    std::set<std::string> names;
    for (const Rail& rail : cluster.nodes[i].rails) {
      const std::string place = where_node(document, i, "rails");
      if (!is_device_name(rail.interface, kMaxInterfaceName)) {
        refuse(place, fmt::format("'{}' is no interface's name", printable(rail.interface, 40)), "see 'ip link'");
      }
      // Plain labs have all their nodes' rails on the loopback interface.
      if (!names.insert(rail.interface).second && rail.interface != "lo") {
        refuse(place, fmt::format("'{}' has two rails on {}", cluster.nodes[i].name, rail.interface),
               "each rail is an interface of its own");
      }
      if (is_for_nobody(rail.address)) {
        refuse(place, fmt::format("{} is no address for a rail", yoke::to_string(rail.address)),
               "it is the network's own, or that of all in it");
      }
      for (const auto& [address, owner] : seen) {
        if (address == rail.address.address) {
          refuse(place,
                 fmt::format("{} is the address of {} and of {}/{}", yoke::to_string(address), owner,
                             cluster.nodes[i].name, rail.interface),
                 "each rail needs an address of its own");
        }
      }
      seen.emplace_back(rail.address.address, cluster.nodes[i].name + "/" + rail.interface);
    }
  }
}

void check_unused(const Cluster& cluster, const Document& document) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const ClusterNode& node = cluster.nodes[i];
    for (const UnusedRail& rail : node.unused) {
      const std::string place = where_node(document, i, "unused");
      if (!is_device_name(rail.interface, kMaxInterfaceName)) {
        refuse(place, fmt::format("'{}' is no interface's name", printable(rail.interface, 40)), "see 'ip link'");
      }
      if (trim(rail.reason).empty()) {
        refuse(place, fmt::format("{} of '{}' is unused without a reason", rail.interface, node.name),
               "say why, as in: unused: [{ interface: enp1s0f1np1, reason: \"leads to the storage\" }]");
      }
      const bool listed = std::any_of(node.rails.begin(), node.rails.end(),
                                      [&](const Rail& used) { return used.interface == rail.interface; });
      if (listed) {
        refuse(place, fmt::format("{} of '{}' is listed in 'rails' and in 'unused'", rail.interface, node.name),
               "remove it from one of the two");
      }
    }
  }
}

void check_subnets(const Cluster& cluster, const Document& document) {
  const std::vector<Ipv4Prefix>& subnets = cluster.fabric->subnets;
  const std::string place = where(document, {"fabric", "subnets"});
  for (std::size_t i = 0; i < subnets.size(); ++i) {
    const Ipv4Prefix& subnet = subnets[i];
    if (subnet.network() != subnet) {
      refuse(place, fmt::format("{} is an address, not a network", yoke::to_string(subnet)),
             fmt::format("its network is {}", yoke::to_string(subnet.network())));
    }
    if (subnet.length < 8 || subnet.host_count() < cluster.nodes.size()) {
      refuse(place, fmt::format("{} does not suit {} nodes", yoke::to_string(subnet), cluster.nodes.size()),
             "a /24 is usual");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(subnets[j], subnet)) {
        refuse(place, fmt::format("{} and {} overlap", yoke::to_string(subnets[j]), yoke::to_string(subnet)),
               "each half of a cable needs a subnet of its own, else all traffic may leave by one rail");
      }
    }
    for (const ClusterNode& node : cluster.nodes) {
      const Result<Ipv4> management = parse_ipv4(node.address);
      if (management && subnet.contains(*management)) {
        refuse(
            place,
            fmt::format("{} holds the management address {} of '{}'", yoke::to_string(subnet), node.address, node.name),
            "the fabric's subnets must not be the management network's");
      }
    }
  }
}

// Each link of a mesh joins two nodes, so its network has one rail of each.
void check_mesh_rails(const Cluster& cluster, const Document& document) {
  std::map<Ipv4Prefix, std::vector<std::size_t>> owners;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    for (const Rail& rail : cluster.nodes[i].rails) owners[rail.address.network()].push_back(i);
  }
  for (const auto& [network, nodes] : owners) {
    if (nodes.size() == 1 || (nodes.size() == 2 && nodes.front() != nodes.back())) continue;
    refuse(where_node(document, nodes.back(), "rails"),
           fmt::format("{} has {} rails in a mesh", yoke::to_string(network), nodes.size()),
           "each link of a mesh joins two nodes: give it a subnet of its own, with one rail of each");
  }
}

void check_topology(const Cluster& cluster, const Document& document) {
  const std::size_t nodes = cluster.nodes.size();
  const std::string place = where(document, {"fabric", "topology"});
  switch (cluster.fabric->topology) {
    case Topology::kDirect:
      if (nodes > 2)
        refuse(place, fmt::format("{} nodes cannot be cabled directly", nodes),
               "three or more need topology: ring, topology: mesh or topology: switch");
      break;
    case Topology::kRing:
      if (nodes < 3)
        refuse(place, fmt::format("a ring has at least three nodes, not {}", nodes), "two nodes are topology: direct");
      break;
    case Topology::kMesh:
      if (nodes != kMeshNodes)
        refuse(place, fmt::format("a mesh has four nodes, not {}", nodes),
               "two nodes are topology: direct, three with a cable between each two topology: ring");
      check_mesh_rails(cluster, document);
      break;
    case Topology::kSwitch:
      break;
  }
  const std::vector<Ipv4Prefix>& subnets = cluster.fabric->subnets;
  const Hardware* hardware = cluster.hardware ? find_hardware(*cluster.hardware) : nullptr;
  if (subnets.empty() || !hardware) return;
  const auto rails = static_cast<std::size_t>(hardware->rails_per_cable);
  const std::size_t needed = subnet_count(cluster.fabric->topology, nodes, rails);
  if (subnets.size() % needed != 0) {
    refuse(where(document, {"fabric", "subnets"}),
           fmt::format("{} subnets for a {} of {} nodes with {} rails a cable", subnets.size(),
                       to_string(cluster.fabric->topology), nodes, rails),
           fmt::format("give {}: one for each {}", needed,
                       cluster.fabric->topology == Topology::kMesh ? "pair of nodes" : "half of each cable"));
  }
}

void check_expectations(const Cluster& cluster, const Document& document) {
  const auto positive = [&](const auto& rate, std::initializer_list<std::string_view> keys) {
    if (rate && rate->value <= 0) refuse(where(document, keys), "a rate must be above zero", "");
  };
  if (cluster.compute) positive(cluster.compute->memory_bandwidth, {"compute", "memory_bandwidth"});
  if (!cluster.fabric) return;
  positive(cluster.fabric->rail_rate, {"fabric", "rail_rate"});
  positive(cluster.fabric->management_rate, {"fabric", "management_rate"});
  const int mtu = cluster.fabric->mtu;
  if (mtu < kMinMtu || mtu > kMaxMtu) {
    refuse(where(document, {"fabric", "mtu"}), fmt::format("an MTU of {} makes no sense", mtu),
           fmt::format("it goes from {} to {}; 9000 is right for RoCE", kMinMtu, kMaxMtu));
  }
}

}  // namespace

bool is_device_name(std::string_view name, std::size_t size_max) {
  return !name.empty() && name.size() <= size_max && name.front() != '-' &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-") ==
             std::string_view::npos;
}

bool is_plain_name(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 63 && is_word(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; });
}

void check_cluster_rules(const Cluster& cluster, const Document& document) {
  check_name(where(document, {"name"}), "a cluster's name", cluster.name);
  if (cluster.lab) check_name(where(document, {"lab"}), "a lab's name", *cluster.lab);
  check_nodes(cluster, document);
  check_nodes_differ(cluster, document);
  check_rails(cluster, document);
  check_unused(cluster, document);
  if (cluster.hardware && !find_hardware(*cluster.hardware)) {
    const std::vector<std::string> names = hardware_names();
    refuse(where(document, {"hardware"}), fmt::format("the catalogue has no '{}'", printable(*cluster.hardware, 40)),
           suggest(*cluster.hardware, names, "names") + "; without the key the machines are probed");
  }
  check_expectations(cluster, document);
  if (cluster.fabric) {
    check_topology(cluster, document);
    check_subnets(cluster, document);
  }
}

}  // namespace yoke::spec
