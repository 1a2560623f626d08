// For tests only: four clusters that engines are launched on, with the facts of captured machines.
#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "yoke/launch/launch_plan.h"
#include "yoke/launch/node_pins.h"
#include "yoke/probe/probe.h"

namespace yoke::launch {

struct LaunchCase {
  spec::Cluster cluster;
  std::vector<LaunchNode> nodes;
};

// Every node is the captured machine with its own address on the management port.
inline LaunchCase make_case(const std::string& fixture, const std::string& topology, int nodes,
                            const std::vector<std::string>& interfaces) {
  std::string yaml = fmt::format("name: desk\nfabric: {{ topology: {} }}\nnodes:\n", topology);
  for (int node = 1; node <= nodes; ++node) {
    yaml += fmt::format("  - name: node-{}\n    address: 10.0.0.{}\n    rails:\n", node, node);
    for (std::size_t rail = 0; rail < interfaces.size(); ++rail) {
      // In a ring each cable is a subnet; elsewhere a rail is one.
      const int cable = topology == "ring" && rail >= 2 ? (node + nodes - 2) % nodes
                        : topology == "ring"            ? node - 1
                                                        : 0;
      yaml += fmt::format("      - {{ interface: {}, address: 192.168.{}.{}/24 }}\n", interfaces[rail],
                          100 + 10 * cable + static_cast<int>(topology == "ring" ? rail % 2 : rail), node);
    }
  }
  LaunchCase made{.cluster = spec::parse_cluster(yaml, "test"), .nodes = {}};
  const spec::Machine captured =
      probe_machine(probe::load_capture(std::filesystem::path(YOKE_SOURCE_DIR) / "tests/fixtures" / fixture));
  for (std::size_t i = 0; i < made.cluster.nodes.size(); ++i) {
    spec::Machine machine = captured;
    for (spec::NetworkInterface& interface : machine.interfaces) {
      if (interface.name == "enP7s7" || interface.name == "eno8303") {
        interface.addresses = {*parse_ipv4_prefix(made.cluster.nodes[i].address + "/24")};
      }
    }
    const PinnedNode pinned = pin_node(made.cluster, i, machine);
    LaunchNode node{.name = made.cluster.nodes[i].name,
                    .own_ip = spec::bootstrap_interface(pinned.facts).address,
                    .gpus = static_cast<int>(machine.gpus.size()),
                    .has_gpu = true,
                    .unified = machine.memory.unified,
                    .gpu_name = machine.gpus.front().name,
                    .cores = machine.cpu.cores.value_or(0),
                    .pins = pinned.pins,
                    .rdma = true};
    made.nodes.push_back(std::move(node));
  }
  return made;
}

inline LaunchCase two_sparks() { return make_case("spark-pair", "direct", 2, {"enp1s0f0np0", "enP2p1s0f0np0"}); }
inline LaunchCase three_sparks() {
  return make_case("spark-ring", "ring", 3, {"enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1"});
}
inline LaunchCase four_sparks() { return make_case("spark-pair", "switch", 4, {"enp1s0f0np0", "enP2p1s0f0np0"}); }
inline LaunchCase two_servers() {
  return make_case("b300", "switch", 2,
                   {"enp24s0np0", "enp41s0np0", "enp58s0np0", "enp75s0np0", "enp154s0np0", "enp170s0np0", "enp186s0np0",
                    "enp202s0np0"});
}

}  // namespace yoke::launch
