// What could be better in addresses that others gave, and whose work they look like. Facts about the tools:
// NVIDIA/dgx-spark-playbooks (connect-two-sparks, connect-three-sparks, multi-sparks-through-switch) and
// eugr/spark-vllm-docker (docs/NETWORKING.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "yoke/link/adopt.h"

namespace yoke {
namespace {

constexpr const char* kReaddress =
    "'yoke link discover --readdress -o cluster.yaml --force' proposes better addresses, 'yoke link setup' makes them";
constexpr int kMtuPlain = 1500;
constexpr int kMtuBest = 9000;

struct Adviser {
  const std::vector<FoundNode>& nodes;
  const LinkMap& map;
  const EndAddresses& addresses;
  std::vector<Finding> findings = {};

  const std::string& name(const LinkEnd& end) const { return nodes[static_cast<std::size_t>(end.node)].access.name; }
  std::string told(const LinkEnd& end) const {
    const auto found = addresses.find(end);
    return fmt::format("{} {} {}", name(end), end.interface,
                       found == addresses.end() ? "no address" : to_string(found->second));
  }

  void tell_unaddressed() {
    for (const LinkSegment& segment : map.segments) {
      for (const LinkEnd& end : segment.ends) {
        if (addresses.contains(end)) continue;
        findings.push_back(
            {.rule = "half-unaddressed",
             .severity = Severity::kWarning,
             .node = name(end),
             .subject = end.interface,
             .what = fmt::format("{} is joined but has no IPv4 address", end.interface),
             .evidence = fmt::format("port {} half {} hears its peer", end.port, end.half),
             .consequence = "it is left out of the cluster file, and yoke does not use it; NCCL by RDMA may",
             .fix = kReaddress});
      }
    }
  }

  void tell_link_local() {
    std::vector<std::string> ends;
    for (const auto& [end, address] : addresses) {
      if (is_link_local(address)) ends.push_back(told(end));
    }
    if (ends.empty()) return;
    findings.push_back({.rule = "link-local-addresses",
                        .severity = Severity::kWarning,
                        .node = std::nullopt,
                        .what = "fast interfaces have addresses that they gave themselves",
                        .evidence = fmt::format("{}", fmt::join(ends, ", ")),
                        .consequence = "they may change with every boot, and all are in one subnet",
                        .fix = kReaddress});
  }

  // Two halves of a node in one network: the kernel sends everything by one of them.
  void tell_shared_subnets() {
    for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
      std::vector<std::string> shared, interfaces;
      for (const auto& [end, address] : addresses) {
        const bool twin = std::any_of(addresses.begin(), addresses.end(), [&](const auto& other) {
          return other.first.node == node && other.first != end && overlap(other.second.network(), address.network());
        });
        if (end.node != node || !twin) continue;
        shared.push_back(told(end));
        interfaces.push_back(end.interface);
      }
      if (shared.empty()) continue;
      findings.push_back({.rule = "subnet-shared",
                          .severity = Severity::kWarning,
                          .node = nodes[static_cast<std::size_t>(node)].access.name,
                          .subject = fmt::format("{}", fmt::join(interfaces, ", ")),
                          .what = "several fast interfaces are in one subnet",
                          .evidence = fmt::format("{}", fmt::join(shared, ", ")),
                          .consequence = "TCP leaves by one of them only: half of the rate",
                          .fix = kReaddress});
    }
  }

  void tell_mismatches() {
    for (const LinkSegment& segment : map.segments) {
      std::set<Ipv4Prefix> networks;
      std::set<int> mtus;
      std::vector<std::string> ends, sizes;
      for (const LinkEnd& end : segment.ends) {
        mtus.insert(interface_at(nodes, end).mtu);
        sizes.push_back(fmt::format("{} {} {}", name(end), end.interface, interface_at(nodes, end).mtu));
        const auto found = addresses.find(end);
        if (found == addresses.end()) continue;
        networks.insert(found->second.network());
        ends.push_back(told(end));
      }
      // A switch that joins all halves has as many networks as a node has ends there.
      const std::size_t expected = subnet_groups(LinkMap{.segments = {segment}}).size();
      if (networks.size() > expected) tell_other_subnet(segment, ends);
      if (mtus.size() > 1) tell_other_mtu(segment, sizes);
    }
  }

  void tell_other_subnet(const LinkSegment& segment, const std::vector<std::string>& ends) {
    findings.push_back(
        {.rule = "subnet-differs",
         .severity = Severity::kFault,
         .node = name(segment.ends.front()),
         .subject = segment.ends.front().interface,
         .what = "the ends of a cable are in different subnets",
         .evidence = fmt::format("{}", fmt::join(ends, ", ")),
         .consequence = "they do not reach each other: traffic goes over the management network or fails",
         .fix = kReaddress});
  }

  void tell_other_mtu(const LinkSegment& segment, const std::vector<std::string>& sizes) {
    const LinkEnd& least = *std::min_element(
        segment.ends.begin(), segment.ends.end(),
        [&](const auto& a, const auto& b) { return interface_at(nodes, a).mtu < interface_at(nodes, b).mtu; });
    findings.push_back({.rule = "mtu-differs",
                        .severity = Severity::kFault,
                        .node = name(least),
                        .subject = least.interface,
                        .what = "the ends of a cable have different MTUs",
                        .evidence = fmt::format("{}", fmt::join(sizes, ", ")),
                        .consequence = "large packets are lost: connections open and then hang",
                        .fix = "'yoke link setup' gives all of them the cluster file's MTU"});
  }

  void tell_small_mtu() {
    std::vector<std::string> ends;
    for (const auto& [end, address] : addresses) {
      if (interface_at(nodes, end).mtu <= kMtuPlain) ends.push_back(fmt::format("{} {}", name(end), end.interface));
    }
    if (ends.empty()) return;
    findings.push_back({.rule = "mtu-small",
                        .severity = Severity::kWarning,
                        .node = std::nullopt,
                        .what = fmt::format("the MTU is {}, and {} is possible", kMtuPlain, kMtuBest),
                        .evidence = fmt::format("{}", fmt::join(ends, ", ")),
                        .consequence = "RoCE sends packets of 1024 bytes instead of 4096, TCP six times as many",
                        .fix = "set mtu: 9000 in the cluster file, then 'yoke link setup'"});
  }
};

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

std::vector<Finding> advise_on_addresses(const std::vector<FoundNode>& nodes, const LinkMap& map,
                                         const EndAddresses& addresses) {
  Adviser adviser{nodes, map, addresses};
  adviser.tell_mismatches();
  adviser.tell_unaddressed();
  adviser.tell_link_local();
  adviser.tell_shared_subnets();
  adviser.tell_small_mtu();
  return std::move(adviser.findings);
}

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
  if (map.topology == Topology::kRing && all_within(addresses, kNvidiaRing)) return "NVIDIA's three-Spark playbook";
  const bool plain_mtu = interface_at(nodes, addresses.begin()->first).mtu == kMtuPlain;
  const bool is_pair = map.topology == Topology::kDirect && all_within(addresses, kPlaybookPair) &&
                       kPlaybookA.contains(addresses.begin()->second.address);
  if (is_pair && (plain_mtu || has_file(nodes, "40-cx7"))) return "NVIDIA's two-Spark playbook";
  return "hand or another tool";
}

}  // namespace yoke
