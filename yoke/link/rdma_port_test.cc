#include "yoke/link/rdma_port.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace yoke::link {
namespace {

// A Spark's two rails of port 0; the second one's table has drifted by one slot.
MemoryTree two_rails() {
  MemoryTree tree;
  const auto add = [&](const std::string& device, const std::string& interface, const std::string& gid, int index) {
    const std::string port = "/sys/class/infiniband/" + device + "/ports/1/";
    tree.add_file(port + "state", "4: ACTIVE\n");
    tree.add_file(port + "gids/0", "fe80:0000:0000:0000:3e6d:66ff:fecc:b3b7\n");
    tree.add_file(port + "gid_attrs/types/0", "IB/RoCE v1\n");
    tree.add_file(port + "gid_attrs/ndevs/0", interface + "\n");
    for (const int slot : {index - 1, index}) {
      tree.add_file(fmt::format("{}gids/{}", port, slot), gid + "\n");
      tree.add_file(fmt::format("{}gid_attrs/types/{}", port, slot), slot == index ? "RoCE v2\n" : "IB/RoCE v1\n");
      tree.add_file(fmt::format("{}gid_attrs/ndevs/{}", port, slot), interface + "\n");
    }
    tree.add_file(port + "counters/symbol_error", "7\n");
    tree.add_file(port + "counters/port_xmit_data", "123456\n");
    tree.add_file(port + "hw_counters/out_of_sequence", "0\n");
  };
  add("rocep1s0f0", "enp1s0f0np0", "0000:0000:0000:0000:0000:ffff:c0a8:6401", 3);
  add("roceP2p1s0f0", "enP2p1s0f0np0", "0000:0000:0000:0000:0000:ffff:c0a8:6501", 4);
  return tree;
}

TEST(RdmaPort, IsFoundByItsInterfaceAndItsGidByTheAddress) {
  const MemoryTree tree = two_rails();
  const auto first = find_rdma_port(tree, "enp1s0f0np0", *parse_ipv4("192.168.100.1"));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->device, "rocep1s0f0");
  EXPECT_TRUE(first->active);
  EXPECT_EQ(first->gid_index, 3);
  const auto second = find_rdma_port(tree, "enP2p1s0f0np0", *parse_ipv4("192.168.101.1"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->gid_index, 4) << "the index is looked up, never assumed to be 3";
  EXPECT_EQ(from_json<RdmaPort>(to_json(*second)), *second);
}

TEST(RdmaPort, CountsOnlyWhatShowsDamage) {
  const auto port = find_rdma_port(two_rails(), "enp1s0f0np0", *parse_ipv4("192.168.100.1"));
  EXPECT_EQ(port->error_counts, (std::vector<NamedCount>{{"symbol_error", 7}, {"out_of_sequence", 0}}));
}

TEST(RdmaPort, AbsentIsAValue) {
  MemoryTree tree = two_rails();
  EXPECT_EQ(find_rdma_port(tree, "enP7s7", {}), std::nullopt);
  EXPECT_EQ(find_rdma_port(MemoryTree{}, "enp1s0f0np0", {}), std::nullopt);
  EXPECT_EQ(find_rdma_port(tree, "enp1s0f0np0", *parse_ipv4("192.168.7.7"))->gid_index, std::nullopt)
      << "an unaddressed rail has no GID to use";
  tree.add_file("/sys/class/infiniband/rocep1s0f0/ports/1/state", "1: DOWN\n");
  EXPECT_FALSE(find_rdma_port(tree, "enp1s0f0np0", {})->active);
}

}  // namespace
}  // namespace yoke::link
