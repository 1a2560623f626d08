#include "yoke/job/node_state.h"

#include <gtest/gtest.h>

namespace yoke::job {
namespace {

TEST(NodeState, HasMemoryAndTheTrafficOfTheNetworkAndOfRdma) {
  MemoryTree machine;
  machine.add_file("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  5 kB\nMemAvailable:    600 kB\n");
  machine.add_file("/sys/class/net/e0/statistics/tx_bytes", "100\n");
  machine.add_file("/sys/class/net/e0/statistics/rx_bytes", "200\n");
  machine.add_file("/sys/class/net/e0/device/infiniband/mlx5_0/node_type", "1\n");
  machine.add_file("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data",
                   "1000\n");  // words of 4 bytes
  machine.add_file("/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "3000\n");
  machine.add_file("/sys/class/net/e1/statistics/tx_bytes", "7\n");
  const NodeState state = read_node_state(machine, {"e0", "e1"});
  EXPECT_EQ(state.memory_bytes, 1'024'000);
  EXPECT_EQ(state.memory_available_bytes, 614'400);
  ASSERT_EQ(state.interfaces.size(), 2U);
  EXPECT_EQ(state.interfaces[0].sent_bytes, 4100);
  EXPECT_EQ(state.interfaces[0].received_bytes, 12'200);
  EXPECT_EQ(state.interfaces[1].sent_bytes, 7);
  EXPECT_EQ(state.interfaces[1].received_bytes, std::nullopt) << "absent, not 0";
  EXPECT_FALSE(state.interfaces[0].is_up) << "this machine has none of that name";
}

TEST(NodeState, OfFilesThatAreMissingOrMakeNoSenseIsAbsent) {
  EXPECT_EQ(read_node_state(MemoryTree(), {}).memory_bytes, std::nullopt);
  MemoryTree machine;
  machine.add_file("/proc/meminfo", "MemTotal: many kB\nMemAvailable: -5 kB\n");
  machine.add_file("/sys/class/net/e0/statistics/tx_bytes", "");
  const NodeState state = read_node_state(machine, {"e0"});
  EXPECT_EQ(state.memory_bytes, std::nullopt);
  EXPECT_EQ(state.memory_available_bytes, std::nullopt);
  EXPECT_EQ(state.interfaces[0], (InterfaceState{.name = "e0"}));
}

}  // namespace
}  // namespace yoke::job
