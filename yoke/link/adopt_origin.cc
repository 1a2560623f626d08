// Whose work addresses look like. Facts about the tools: NVIDIA/dgx-spark-playbooks (connect-two-sparks,
// connect-three-sparks, multi-sparks-through-switch) and eugr/spark-vllm-docker (docs/NETWORKING.md).
#include <algorithm>

#include "yoke/link/adopt.h"

namespace yoke::link {
namespace {

constexpr int kMtuPlain = 1500;

bool has_file(const std::vector<FoundNode>& nodes, std::string_view part) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const FoundNode& node) {
    const std::vector<std::string>& files = node.report.netplan;
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return file.find(part) != std::string::npos; });
  });
}

bool all_within(const EndAddresses& addresses, const Ipv4Prefix& network) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [&](const auto& entry) { return network.contains(entry.second.address); });
}

bool share_subnet(const EndAddresses& addresses) {
  for (const auto& [end, address] : addresses) {
    for (const auto& [other, theirs] : addresses) {
      if (end.node == other.node && end < other && overlap(address.network(), theirs.network())) return true;
    }
  }
  return false;
}

}  // namespace

std::string guess_origin(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& addresses) {
  constexpr Ipv4Prefix kPlaybookA{{192U << 24U | 168U << 16U | 100U << 8U}, 24};
  constexpr Ipv4Prefix kPlaybookPair{{192U << 24U | 168U << 16U | 100U << 8U}, 23};  // 192.168.100 and .101
  constexpr Ipv4Prefix kNvidia{{192U << 24U | 168U << 16U}, 16};
  constexpr Ipv4Prefix kNvidiaRing{{192U << 24U | 168U << 16U}, 21};  // 192.168.0 to .7, of which it uses .0 to .5
  constexpr Ipv4Prefix kVllmDocker{{10U << 24U | 20U << 16U}, 16};
  if (addresses.empty()) return "nobody yet";
  if (has_file(nodes, "yoke")) return "yoke";
  const bool all_local =
      std::all_of(addresses.begin(), addresses.end(), [](const auto& entry) { return is_link_local(entry.second); });
  if (all_local) return "NVIDIA's netplan file for link-local addresses";
  if (has_file(nodes, "spark-vllm-docker") || all_within(addresses, kVllmDocker)) return "spark-vllm-docker";
  if (share_subnet(addresses) && all_within(addresses, kNvidia)) return "NVIDIA's cluster script";
  if (map.topology == spec::Topology::kRing && all_within(addresses, kNvidiaRing))
    return "NVIDIA's three-Spark playbook";
  const bool plain_mtu = interface_at(nodes, addresses.begin()->first).mtu == kMtuPlain;
  const bool is_pair = map.topology == spec::Topology::kDirect && all_within(addresses, kPlaybookPair) &&
                       kPlaybookA.contains(addresses.begin()->second.address);
  if (is_pair && (plain_mtu || has_file(nodes, "40-cx7"))) return "NVIDIA's two-Spark playbook";
  return "hand or another tool";
}

}  // namespace yoke::link
