#include "yoke/spec/fabric_pins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "yoke/base/text.h"

namespace yoke::spec {
namespace {

// 'yoke link setup' writes this file from the same function: its lines are not the user's own settings.
constexpr std::string_view kOwnFile = "/etc/yoke/fabric.env";

// A Spark in a ring has four rails, in a mesh three. A node with more is a server with a NIC for each GPU.
constexpr std::size_t kRailsOfADesk = 4;

const NetworkInterface* with_address(const Machine& machine, const std::string& address) {
  const auto wanted = parse_ipv4(address);
  if (!wanted) return nullptr;
  for (const NetworkInterface& interface : machine.interfaces) {
    for (const Ipv4Prefix& own : interface.addresses) {
      if (own.address == *wanted) return &interface;
    }
  }
  return nullptr;
}

// The cluster file may have a name for the node: then the default route tells.
const NetworkInterface* management_of(const Cluster& cluster, const ClusterNode& node, const Machine& machine) {
  const NetworkInterface* found = with_address(machine, node.address);
  if (!found && !cluster.lab) {
    for (const Route& route : machine.routes) {
      if (!route.destination && !route.down) found = find_interface(machine, route.interface);
      if (found) break;
    }
  }
  return found;
}

// Of the paths in nvidia-smi's words, nearest first.
constexpr std::array<std::string_view, 6> kPaths = {"PIX", "PXB", "PXN", "PHB", "NODE", "SYS"};
std::size_t rank_of(const std::string& path) {
  return static_cast<std::size_t>(std::find(kPaths.begin(), kPaths.end(), path) - kPaths.begin());
}

std::string path_from_gpus(const Machine& machine) {
  if (!machine.topology) return "";
  const DeviceTopology& topology = *machine.topology;
  std::size_t longest = 0;
  bool any = false;
  for (std::size_t row = 0; row < topology.devices.size(); ++row) {
    if (!topology.devices[row].starts_with("GPU")) continue;
    std::size_t nearest_path = kPaths.size();
    for (std::size_t column = 0; column < topology.devices.size() && row < topology.paths.size(); ++column) {
      if (topology.devices[column].starts_with("GPU") || column >= topology.paths[row].size()) continue;
      nearest_path = std::min(nearest_path, rank_of(topology.paths[row][column]));
    }
    if (nearest_path == kPaths.size()) return "";
    longest = std::max(longest, nearest_path);
    any = true;
  }
  return any ? std::string(kPaths[longest]) : "";
}

// With their port, as NCCL and UCX name them; empty where a rail has none, so that part of a list is never pinned.
std::vector<std::string> rdma_ports(const PinFacts& facts) {
  std::vector<std::string> ports;
  for (const std::string& device : facts.rdma_devices) {
    if (device.empty()) return {};
    ports.push_back(device + ":1");
  }
  return ports;
}

void pin_rdma(const PinFacts& facts, const std::vector<std::string>& ports, FabricPins& all) {
  if (ports.empty()) {
    all.left_out.emplace_back("Not every rail has an RDMA device: NCCL_IB_HCA is left to NCCL.");
    return;
  }
  all.pins.push_back(
      {"NCCL_IB_HCA", fmt::format("={}", fmt::join(ports, ",")),
       facts.gpus > 1
           ? "Exactly these devices ('=': not all that begin so), one for each rail; NCCL gives each GPU its own."
           : "Exactly these devices ('=': not all that begin so), one for each rail: with one missing, half "
             "the rate."});
  all.pins.push_back({"NCCL_NET", "IB", "A fall-back to sockets becomes an error instead of a slow job."});
  all.left_out.emplace_back(
      "NCCL_IB_GID_INDEX is left out on purpose: the index drifts; NCCL finds the RoCE v2 entry at each start.");
}

void pin_gpu_direct(const PinFacts& facts, FabricPins& all) {
  if (facts.unified_memory) {
    all.left_out.emplace_back("NCCL_NET_GDR_LEVEL is left out: a GPU with unified memory has no GPUDirect RDMA.");
  } else if (!facts.gpu_nic_path.empty()) {
    const bool near = facts.gpu_nic_path == "PIX" || facts.gpu_nic_path == "PXB";
    all.pins.push_back({"NCCL_NET_GDR_LEVEL", near ? "PXB" : facts.gpu_nic_path,
                        fmt::format("GPUDirect RDMA: each GPU reaches its nearest NIC by {}; NCCL uses it up to this "
                                    "distance.",
                                    facts.gpu_nic_path)});
  }
  if (facts.gpus > 1) {
    all.left_out.emplace_back(
        "NCCL_IB_TC and NCCL_IB_SL are left out: which class is lossless is the switch's configuration.");
  }
}

void pin_neighbours(FabricPins& all) {
  all.pins.push_back({"NCCL_IB_SUBNET_AWARE_ROUTING", "1",
                      "In a ring or mesh each neighbour is behind another port (NCCL 2.30.7 and later)."});
  all.pins.push_back(
      {"NCCL_IB_MERGE_NICS", "0", "The ports of a node lead to different neighbours: never one device."});
  all.pins.push_back({"NCCL_NET_PLUGIN", "none", "Plugins of containers do not know rings and meshes."});
  all.pins.push_back({"NCCL_CROSS_NIC", "1", "A ring of ranks leaves by one port and comes back by another."});
}

// An empty setting is a finding of 'yoke check' (pin-empty), not a wish.
const NetworkSetting* own_setting(const std::vector<NetworkSetting>& settings, const std::string& name) {
  for (const NetworkSetting& setting : settings) {
    if (setting.name == name && setting.where != kOwnFile && !trim(setting.value).empty()) return &setting;
  }
  return nullptr;
}

}  // namespace

PinFacts pin_facts(const Cluster& cluster, std::size_t index, const Machine& machine) {
  const ClusterNode& node = cluster.nodes.at(index);
  PinFacts facts{.topology = cluster.fabric ? cluster.fabric->topology : Topology::kDirect};
  for (const Rail& rail : node.rails) {
    const NetworkInterface* interface = find_interface(machine, rail.interface);
    if (!interface || !interface->up || !interface->carrier) {
      facts.dark_rails.push_back(rail.interface);
      continue;
    }
    if (facts.interfaces.empty()) facts.rail_address = to_string(rail.address.address);
    facts.interfaces.push_back(rail.interface);
    facts.rdma_devices.push_back(interface->rdma_device.value_or(""));
  }
  if (const NetworkInterface* management = management_of(cluster, node, machine)) {
    facts.management_interface = management->name;
    if (parse_ipv4(node.address)) {
      facts.management_address = node.address;  // ssh reaches the node by it
    } else if (!management->addresses.empty()) {
      facts.management_address = to_string(management->addresses.front().address);
    }
  }
  for (const ClusterNode& other : cluster.nodes) {
    for (const Rail& rail : other.rails) {
      const std::string subnet = to_string(rail.address.network());
      if (std::find(facts.subnets.begin(), facts.subnets.end(), subnet) == facts.subnets.end()) {
        facts.subnets.push_back(subnet);
      }
    }
  }
  facts.gpus = static_cast<int>(machine.gpus.size());
  facts.unified_memory = machine.memory.unified;
  if (!facts.unified_memory) facts.gpu_nic_path = path_from_gpus(machine);
  return facts;
}

BootstrapInterface bootstrap_interface(const PinFacts& facts) {
  const bool ring = is_ring_or_mesh(facts.topology);
  const bool server = facts.interfaces.size() > kRailsOfADesk;
  // In a ring or mesh no rail reaches every node by itself. In a rack of servers rails may be separate fabrics.
  if ((ring || server || facts.interfaces.empty()) && !facts.management_interface.empty()) {
    return {facts.management_interface, facts.management_address,
            ring     ? fmt::format("where all nodes of a {} reach each other", to_string(facts.topology))
            : server ? "the management network; the rails carry the data alone"
                     : "the management network: no rail has a link"};
  }
  if (facts.interfaces.empty()) return {};
  return {facts.interfaces.front(), facts.rail_address, "the first rail"};
}

FabricPins fabric_pins(const PinFacts& facts) {
  FabricPins all;
  const BootstrapInterface bootstrap = bootstrap_interface(facts);
  if (facts.interfaces.empty()) {
    all.left_out.emplace_back("No rail of the cluster file has a link on this node: nothing is pinned.");
    return all;
  }
  const std::vector<std::string> ports = rdma_ports(facts);
  pin_rdma(facts, ports, all);
  pin_gpu_direct(facts, all);
  all.pins.push_back({"NCCL_SOCKET_IFNAME", "=" + bootstrap.interface,
                      "Where NCCL's ranks first meet: " + bootstrap.reason + ". '=': exactly this name."});
  all.pins.push_back({"GLOO_SOCKET_IFNAME", bootstrap.interface,
                      "The same for Gloo (PyTorch's CPU collectives), which takes plain names."});
  all.pins.push_back({"TP_SOCKET_IFNAME", bootstrap.interface, "The same for TensorPipe (PyTorch's RPC)."});
  all.pins.push_back({"UCX_NET_DEVICES", fmt::format("{}", fmt::join(ports.empty() ? facts.interfaces : ports, ",")),
                      "UCX (MPI, NIXL): all rails."});
  all.pins.push_back({"OMPI_MCA_btl_tcp_if_include", fmt::format("{}", fmt::join(facts.subnets, ",")),
                      "Open MPI over TCP: by subnet, as names differ between nodes; never docker0, which all nodes "
                      "have."});
  if (is_ring_or_mesh(facts.topology)) pin_neighbours(all);
  for (const std::string& rail : facts.dark_rails) {
    all.left_out.push_back(fmt::format("{} is left out: it has no link now. 'yoke check' shows why.", rail));
  }
  return all;
}

NodePins choose_pins(const PinFacts& facts, const std::vector<NetworkSetting>& settings) {
  const FabricPins all = fabric_pins(facts);
  NodePins chosen{.set = {}, .overridden = {}, .left_out = all.left_out};
  for (const FabricPin& pin : all.pins) {
    const NetworkSetting* own = own_setting(settings, pin.name);
    if (own && own->value != pin.value) {
      chosen.overridden.push_back({pin, *own});
      chosen.set.push_back({pin.name, own->value, fmt::format("Your own setting ({}).", own->where)});
    } else {
      chosen.set.push_back(pin);
    }
  }
  return chosen;
}

std::string describe_override(std::string_view node, const OverriddenPin& overridden) {
  return fmt::format("{}: {} stays {} ({}); yoke would set {}.", node, overridden.pin.name,
                     printable(overridden.own.value, 80), overridden.own.where, overridden.pin.value);
}

}  // namespace yoke::spec
