// A cluster of two nodes with two rails, and samples of it, for tests.
#pragma once
#include <string>

#include "yoke/watch/board.h"

namespace yoke::watch {

inline WatchPlan plan_of_two() {
  const auto node = [](const std::string& number) {
    return spec::ClusterNode{.name = "spark-" + number,
                             .address = "10.0.0." + number,
                             .user = {},
                             .rails = {{"railA", *parse_ipv4_prefix("192.168.100." + number + "/24")},
                                       {"railB", *parse_ipv4_prefix("192.168.101." + number + "/24")}}};
  };
  WatchPlan plan;
  plan.cluster.name = "desk";
  plan.cluster.nodes = {node("1"), node("2")};
  plan.cluster.hardware = "spark";
  plan.cluster.fabric = spec::Fabric{};
  plan.cluster.fabric->rail_rate = BitsPerSecond{2e9};
  return plan;
}

inline spec::Machine machine_of_two() {
  spec::Machine machine;
  machine.hostname = "spark";
  machine.memory.total = Bytes{128LL << 30};
  machine.memory.unified = true;
  for (const char* name : {"railA", "railB"}) {
    spec::NetworkInterface interface;
    interface.name = name;
    interface.kind = spec::InterfaceKind::kEthernet;
    interface.up = interface.carrier = true;
    interface.mtu = 9000;
    interface.port = 0;
    interface.rail = std::string(1, name[4]);
    machine.interfaces.push_back(interface);
  }
  return machine;
}

// After so many seconds, with these bytes received on the rails so far.
inline Sample sample_at(double seconds, std::int64_t rail_a = 0, std::int64_t rail_b = 0) {
  Sample sample;
  sample.time = 1e9 + seconds;
  sample.uptime = 100 + seconds;
  sample.cpu = {.cores = 4,
                .busy = static_cast<std::int64_t>(seconds * 100),
                .total = 400 + static_cast<std::int64_t>(seconds * 400),
                .load = 1.0};
  sample.memory.total = Bytes{128LL << 30};
  sample.memory.available = Bytes{100LL << 30};
  for (const char* name : {"railA", "railB"}) {
    RailSample rail;
    rail.interface = name;
    rail.rail = std::string(1, name[4]);
    rail.port = 0;
    rail.up = rail.carrier = true;
    rail.rx_bytes = name[4] == 'A' ? rail_a : rail_b;
    rail.tx_bytes = 0;
    rail.rx_errors = rail.tx_errors = rail.rx_dropped = rail.tx_dropped = 0;
    sample.rails.push_back(rail);
  }
  return sample;
}

inline Observation observe(std::size_t node, double seconds, const Sample& sample) {
  return {.node = node, .time = 1e9 + seconds, .sample = sample};
}

// Both nodes, with their facts.
inline void begin(Board& board) {
  for (std::size_t node = 0; node < 2; ++node) board.take({.node = node, .time = 1e9, .machine = machine_of_two()});
}

}  // namespace yoke::watch
