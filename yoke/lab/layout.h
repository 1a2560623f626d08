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

namespace yoke {

struct LabOptions {
  std::string name = "lab";
  int nodes = 2;
  std::optional<Topology> topology;  // absent: direct for two nodes, else switch
  std::string hardware = "spark";    // spark, b300 or none
  BitsPerSecond half_rate{2e9};
  bool unshaped = false;  // the halves carry what the machine can, whatever half_rate says
  BitsPerSecond management_rate{1e9};
  Bytes memory{512LL << 20};
  bool bare = false;   // the fast interfaces as from the factory: no addresses, MTU 1500, IPv6 on
  bool plain = false;  // without namespaces: nodes are plain processes on loopback addresses (plain.h)
};

struct LabInterface {
  std::string name;
  std::string mac;  // empty: the kernel chooses
  int port = 0;
  std::string half;                   // "A" or "B"
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
  std::vector<LabRoute> routes;          // rings: to the addresses of nodes that are not on the same cable
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
  Topology topology = Topology::kDirect;
  std::optional<BitsPerSecond> half_rate;  // absent: unshaped
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
inline constexpr int kLabNodesMost = 8;

// Throws Error(kUsage) for what makes no sense: a ring of two, no nodes, a rate of zero, a name with a slash.
LabLayout lay_out_lab(const LabOptions& options);

Cluster lab_cluster(const LabLayout& layout);

// By name ("spark-2") or number ("2"); an Error that names the nodes otherwise.
const LabNode& find_lab_node(const LabLayout& layout, std::string_view name_or_number);
// The other end of an interface's half-cable: (node number, interface); nothing where it has no cable or is switched.
std::optional<std::pair<int, std::string>> find_peer(const LabLayout& layout, int node, std::string_view interface);

Document to_json(const LabLayout& layout);
LabLayout lab_layout_from_json(const Document& document);

}  // namespace yoke
