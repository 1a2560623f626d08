// The variables that make NCCL, Gloo, UCX and Open MPI use the rails, and all of them, each with its reason. One pure
// function from facts to variables: `yoke link setup` writes them to a file, jobs and launched engines get them when
// they start.
//
//   const NodePins pins = choose_pins(pin_facts(cluster, 0, machine), machine.settings);
//   for (const FabricPin& pin : pins.set) fmt::print("{}={}  # {}\n", pin.name, pin.value, pin.reason);
#pragma once
#include <string>
#include <vector>

#include "yoke/spec/cluster.h"
#include "yoke/spec/machine.h"

namespace yoke::spec {

// What the pins of one node follow from.
struct PinFacts {
  Topology topology = Topology::kDirect;
  std::vector<std::string> interfaces;    // of the rails that have a link, in their order
  std::vector<std::string> rdma_devices;  // of these rails; an empty text where there is none
  std::vector<std::string> dark_rails;    // rails of the cluster file without a link or without their interface
  std::string management_interface;       // the one that ssh reaches the node by; empty: not known
  std::string management_address;         // of it; empty: not known
  std::string rail_address;               // of the first rail
  std::vector<std::string> subnets;       // of all rails of all nodes
  int gpus = 0;                           // 0: not known
  bool unified_memory = false;
  std::string gpu_nic_path;  // the longest way from a GPU to its nearest NIC: "PIX", "PXB", …; empty: not known
};
PinFacts pin_facts(const Cluster& cluster, std::size_t node, const Machine& machine);

// Where the ranks of all nodes first meet: by an interface that leads to every node.
struct BootstrapInterface {
  std::string interface;
  std::string address;  // the node's own there; empty: not known
  std::string reason;
};
BootstrapInterface bootstrap_interface(const PinFacts& facts);

struct FabricPin {
  std::string name, value, reason;
  friend bool operator==(const FabricPin&, const FabricPin&) = default;
};

struct FabricPins {
  std::vector<FabricPin> pins;
  std::vector<std::string> left_out;  // what is not pinned on purpose, and why: whole sentences
};
FabricPins fabric_pins(const PinFacts& facts);

// The same against what the user has set on the node: the user's value stays.
struct OverriddenPin {
  FabricPin pin;       // what yoke would set
  NetworkSetting own;  // what the node has
};
struct NodePins {
  std::vector<FabricPin> set;  // what a rank gets: yoke's values, and the user's where there are some
  std::vector<OverriddenPin> overridden;
  std::vector<std::string> left_out;
};
NodePins choose_pins(const PinFacts& facts, const std::vector<NetworkSetting>& settings);

// "spark-2: NCCL_IB_HCA stays =mlx5_1 (/etc/environment); yoke would set =rocep1s0f0:1."
std::string describe_override(std::string_view node, const OverriddenPin& overridden);

}  // namespace yoke::spec
