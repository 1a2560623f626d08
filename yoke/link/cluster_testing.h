// For tests only: clusters as the lab writes them.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "yoke/spec/cluster.h"
#include "yoke/spec/mesh.h"

namespace yoke::link {

// Node k has the address 10.77.0.k; `rails` gives for each node its interfaces and addresses.
struct TestRail {
  std::string interface, address;
};
inline spec::Cluster test_cluster(const std::string& topology, const std::vector<std::vector<TestRail>>& rails) {
  std::string yaml = "name: desk\nhardware: spark\nfabric: { topology: " + topology + " }\nnodes:\n";
  for (std::size_t i = 0; i < rails.size(); ++i) {
    yaml += fmt::format("  - name: spark-{}\n    address: 10.77.0.{}\n", i + 1, i + 1);
    if (rails[i].empty()) continue;
    yaml += "    rails:\n";
    for (const TestRail& rail : rails[i]) {
      yaml += fmt::format("      - {{ interface: {}, address: {} }}\n", rail.interface, rail.address);
    }
  }
  return spec::parse_cluster(yaml, "test");
}

inline spec::Cluster test_pair() {
  return test_cluster("direct", {{{"enp1s0f0np0", "192.168.100.1/24"}, {"enP2p1s0f0np0", "192.168.101.1/24"}},
                                 {{"enp1s0f0np0", "192.168.100.2/24"}, {"enP2p1s0f0np0", "192.168.101.2/24"}}});
}

// Port 0 of each to port 1 of the next; cable c has the subnets 192.168.(100 + 10c) and (101 + 10c).
inline spec::Cluster test_ring(int nodes) {
  std::vector<std::vector<TestRail>> rails(static_cast<std::size_t>(nodes));
  for (int node = 0; node < nodes; ++node) {
    const auto at = [&](int cable, int rail) {
      return fmt::format("192.168.{}.{}/24", 100 + 10 * cable + rail, node + 1);
    };
    const int before = (node + nodes - 1) % nodes;
    rails[static_cast<std::size_t>(node)] = {{"enp1s0f0np0", at(node, 0)},
                                             {"enP2p1s0f0np0", at(node, 1)},
                                             {"enp1s0f1np1", at(before, 0)},
                                             {"enP2p1s0f1np1", at(before, 1)}};
  }
  return test_cluster("ring", rails);
}

// Four nodes by breakout optics, as the lab cables them: the same half at both ends of each link.
inline spec::Cluster test_mesh() {
  const std::vector<std::string> halves = {"enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1"};
  std::vector<std::vector<TestRail>> rails(spec::kMeshNodes);
  int subnet = 100;
  for (int node = 0; node < spec::kMeshNodes; ++node) {
    for (int half = 0; half < spec::kMeshHalves; ++half) {
      const int peer = spec::mesh_peer(node, half);
      if (peer < node) continue;
      for (const int end : {node, peer}) {
        std::vector<TestRail>& own = rails[static_cast<std::size_t>(end)];
        own.resize(halves.size());
        const auto at = static_cast<std::size_t>(half);
        own[at] = {halves[at], fmt::format("192.168.{}.{}/24", subnet, end + 1)};
      }
      ++subnet;
    }
  }
  return test_cluster("mesh", rails);
}

inline spec::Cluster test_switch(int nodes) {
  std::vector<std::vector<TestRail>> rails;
  for (int node = 1; node <= nodes; ++node) {
    rails.push_back({{"enp1s0f0np0", fmt::format("192.168.100.{}/24", node)},
                     {"enP2p1s0f0np0", fmt::format("192.168.101.{}/24", node)}});
  }
  return test_cluster("switch", rails);
}

}  // namespace yoke::link
