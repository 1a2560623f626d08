#include "yoke/link/environment_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace yoke {
namespace {

class Lines {
 public:
  void say(std::string_view comment) { text_ += fmt::format("# {}\n", comment); }
  void leave_out(std::string_view comment) { text_ += fmt::format("\n# {}\n", comment); }
  void pin(std::string_view name, std::string_view value, std::string_view comment) {
    text_ += fmt::format("\n# {}\n{}={}\n", comment, name, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::vector<std::string> interfaces_of(const ClusterNode& node) {
  std::vector<std::string> names;
  for (const Half& half : node.halves) names.push_back(half.interface);
  return names;
}

// With their port, as NCCL and UCX name them; empty where a half has none, so that half a list is never pinned.
std::vector<std::string> rdma_ports(const SetupFacts& facts) {
  std::vector<std::string> ports;
  for (const std::string& device : facts.rdma_devices) {
    if (device.empty()) return {};
    ports.push_back(device + ":1");
  }
  return ports;
}

std::vector<std::string> subnets_of(const Cluster& cluster) {
  std::vector<std::string> subnets;
  for (const ClusterNode& node : cluster.nodes) {
    for (const Half& half : node.halves) {
      const std::string subnet = to_string(half.address.network());
      if (std::find(subnets.begin(), subnets.end(), subnet) == subnets.end()) subnets.push_back(subnet);
    }
  }
  return subnets;
}

void pin_rdma(Lines& lines, const std::vector<std::string>& ports) {
  if (ports.empty()) {
    lines.leave_out("Not every half has an RDMA device: NCCL_IB_HCA is left to NCCL.");
    return;
  }
  lines.pin("NCCL_IB_HCA", fmt::format("={}", fmt::join(ports, ",")),
            "Exactly these devices ('=': not all that begin so), one for each half: with one missing, half the rate.");
  lines.pin("NCCL_NET", "IB", "A fall-back to sockets becomes an error instead of a slow day.");
  lines.leave_out(
      "NCCL_IB_GID_INDEX is left out on purpose: the index drifts; NCCL finds the RoCE v2 entry at each start.");
}

void pin_ring(Lines& lines) {
  lines.pin("NCCL_IB_SUBNET_AWARE_ROUTING", "1",
            "In a ring each neighbour is behind another port (NCCL 2.30.7 and later).");
  lines.pin("NCCL_IB_MERGE_NICS", "0", "The two ports of a node lead to different neighbours: never one device.");
  lines.pin("NCCL_NET_PLUGIN", "none", "Plugins of containers do not know rings.");
  lines.pin("NCCL_CROSS_NIC", "1", "A ring leaves by one port and comes back by the other.");
}

}  // namespace

std::string render_environment(const Cluster& cluster, const ClusterNode& node, const SetupFacts& facts) {
  const bool ring = cluster.fabric && cluster.fabric->topology == Topology::kRing;
  const std::vector<std::string> interfaces = interfaces_of(node);
  const std::vector<std::string> ports = rdma_ports(facts);
  // In a ring no fast interface reaches every node by itself; the management network does.
  const bool by_management = ring && !facts.management_interface.empty();
  const std::string meeting = by_management ? facts.management_interface : interfaces.front();
  const std::string where = by_management ? "where all nodes of a ring reach each other" : "the first half";
  Lines lines;
  lines.say(fmt::format("Pins for the fabric of cluster '{}' on {}.", cluster.name, node.name));
  lines.say("Written by 'yoke link setup'; 'yoke link undo' takes it back. Use: set -a; . " +
            std::string(kEnvironmentFile) + "; set +a");
  pin_rdma(lines, ports);
  lines.pin("NCCL_SOCKET_IFNAME", "=" + meeting,
            "Where NCCL's ranks first meet: " + where + ". '=': exactly this name.");
  lines.pin("GLOO_SOCKET_IFNAME", meeting, "The same for Gloo (PyTorch's CPU collectives), which takes plain names.");
  lines.pin("UCX_NET_DEVICES", fmt::format("{}", fmt::join(ports.empty() ? interfaces : ports, ",")),
            "UCX (MPI, NIXL): all halves.");
  lines.pin("OMPI_MCA_btl_tcp_if_include", fmt::format("{}", fmt::join(subnets_of(cluster), ",")),
            "Open MPI over TCP: by subnet, as names differ between nodes; never docker0, which all nodes have.");
  if (ring) pin_ring(lines);
  return lines.take();
}

}  // namespace yoke
