// What a lab is made of, as plain data: nodes, interfaces, cables, addresses. lay_out_lab() is pure; what it returns is
// kept as lab.json in the lab's state folder, and everything else (network, nodes, faults, the cluster file) follows
// from it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/ip.h"
#include "yoke/base/units.h"
#include "yoke/spec/cluster.h"

namespace yoke::lab {

struct LabOptions {
  std::string name = "lab";
  int nodes = 2;
  std::optional<spec::Topology> topology;                       // absent: direct for two nodes, else switch
  std::string hardware = "spark";                               // spark, b300 or none
  int cables = 1;                                               // between two Sparks, which have two ports
  std::optional<BitsPerSecond> rail_rate = BitsPerSecond{2e9};  // nothing: what the machine can
  BitsPerSecond management_rate{1e9};
  Bytes memory{512LL << 20};
  bool bare = false;   // the fast interfaces as from the factory: no addresses, MTU 1500, IPv6 on
  bool plain = false;  // without namespaces: nodes are plain processes on loopback addresses (plain.h)
};

struct LabInterface {
  std::string name;
  std::string mac;  // empty: the kernel chooses
  int port = 0;
  std::string rail;                   // "A" or "B"
  std::optional<Ipv4Prefix> address;  // when set up; absent for a port without a cable
  friend bool operator==(const LabInterface&, const LabInterface&) = default;
};

struct LabRoute {
  Ipv4Prefix to;
  Ipv4 via;
  friend bool operator==(const LabRoute&, const LabRoute&) = default;
};

struct LabNode {
  int number = 1;  // from 1
  std::string name;
  Ipv4Prefix management;
  std::vector<LabInterface> interfaces;  // the fast ones
  std::vector<LabRoute> routes;          // rings, meshes: to the addresses of nodes that are not on the same cable
  friend bool operator==(const LabNode&, const LabNode&) = default;
};

// One half of a cable. Node 0 is the switch, where the "interface" is a bridge.
struct LabCable {
  int node_a = 1;
  std::string interface_a;
  int node_b = 0;
  std::string interface_b;
  friend bool operator==(const LabCable&, const LabCable&) = default;
};

struct LabLayout {
  std::string name;
  std::string hardware;
  spec::Topology topology = spec::Topology::kDirect;
  std::optional<BitsPerSecond> rail_rate;  // absent: unshaped
  BitsPerSecond management_rate;
  std::string management_interface;
  Bytes memory;
  bool bare = false;
  bool plain = false;
  int ssh_port = 22;
  std::vector<LabNode> nodes;
  std::vector<LabCable> cables;
  std::vector<Ipv4Prefix> subnets;
  friend bool operator==(const LabLayout&, const LabLayout&) = default;
};

inline constexpr int kLabMtu = 9000;
inline constexpr int kMaxLabNodes = 8;

// Throws Error(kUsage) for what makes no sense: a ring of two, a mesh of three, no nodes, a rate of zero, a name with a
// slash.
LabLayout lay_out_lab(const LabOptions& options);

spec::Cluster lab_cluster(const LabLayout& layout);

// The rails that share one PCIe link of the NIC: on a Spark the same rail of both ports. Only those of more than one
// cabled rail, where the link carries less than its rails could; by rail.
struct SharedNicLink {
  std::string rail;
  std::vector<std::string> interfaces;
};
std::vector<SharedNicLink> shared_nic_links(const LabLayout& layout, const LabNode& node);

// By name ("spark-2") or number ("2"); an Error that names the nodes otherwise.
const LabNode& find_lab_node(const LabLayout& layout, std::string_view name_or_number);
// The other end of an interface's rail-cable: (node number, interface); nothing where it has no cable or is switched.
std::optional<std::pair<int, std::string>> find_peer(const LabLayout& layout, int node, std::string_view interface);

Document to_json(const LabLayout& layout);
void from_json(const Document& document, LabLayout& layout);

}  // namespace yoke::lab
