#include "yoke/bench/path_limit.h"

#include <gtest/gtest.h>

#include "yoke/link/cluster_testing.h"

namespace yoke::bench {
namespace {

constexpr double kGb = 1e9 / 8;  // bytes/s

double limit_in_gbit(const spec::Cluster& cluster, const PathQuestion& question) {
  const auto limit = limit_of(cluster, question);
  return limit ? limit->whole().value / kGb : 0;
}

TEST(PathLimit, OfAPairIsBothRails) {
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_pair(), {.ranks = 2}), 200);
  const auto limit = limit_of(link::test_pair(), {.ranks = 2});
  EXPECT_EQ(limit->rails, 2);
  EXPECT_EQ(limit->source, "the catalogue");
  EXPECT_EQ(limit->path, "");
}

TEST(PathLimit, OfARingOfThreeIsWhatTheNicCarriesNotFourRails) {
  const auto limit = limit_of(link::test_ring(3), {.ranks = 3});
  ASSERT_TRUE(limit);
  EXPECT_DOUBLE_EQ(limit->whole().value, 25e9);
  EXPECT_EQ(limit->rails, 2);
  EXPECT_NE(limit->path.find("NIC"), std::string::npos);
}

TEST(PathLimit, OfALargerRingCountsWhatNeighboursForward) {
  // Each node sends to three others, and passes on what one of them sends to its opposite: 3 of 4 parts are its own.
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_ring(4), {.ranks = 4}), 150);
  EXPECT_NE(limit_of(link::test_ring(4), {.ranks = 4})->path.find("forwarded"), std::string::npos);
  EXPECT_LT(limit_in_gbit(link::test_ring(6), {.ranks = 6}), 150);
}

TEST(PathLimit, OfAMeshIsTheNicLinkThatTwoRailsShare) {
  // Each node sends two parts to each of three others; two of its rails share a PCIe link of one rail's rate.
  const auto limit = limit_of(link::test_mesh(), {.ranks = 4});
  ASSERT_TRUE(limit);
  EXPECT_DOUBLE_EQ(limit->whole().value / kGb, 150);
  EXPECT_EQ(limit->path, "what each node's NIC carries of its 3 rails") << "nobody forwards";
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_switch(4), {.ranks = 4}), 200);
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_mesh(), {.ranks = 4, .transport = rank::Transport::kNccl}), 100);
}

TEST(PathLimit, OfNcclOnARingIsTheCableToTheNextNode) {
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_ring(4), {.ranks = 4, .transport = rank::Transport::kNccl}), 200);
}

TEST(PathLimit, OfTwoCablesBetweenTwoSparksIsOneNics) {
  const spec::Cluster two = link::test_cluster("direct", {{{"enp1s0f0np0", "192.168.100.1/24"},
                                                           {"enP2p1s0f0np0", "192.168.101.1/24"},
                                                           {"enp1s0f1np1", "192.168.102.1/24"},
                                                           {"enP2p1s0f1np1", "192.168.103.1/24"}},
                                                          {{"enp1s0f0np0", "192.168.100.2/24"},
                                                           {"enP2p1s0f0np0", "192.168.101.2/24"},
                                                           {"enp1s0f1np1", "192.168.102.2/24"},
                                                           {"enP2p1s0f1np1", "192.168.103.2/24"}}});
  EXPECT_DOUBLE_EQ(limit_in_gbit(two, {.ranks = 2}), 200);
}

// Two servers with eight rails each.
spec::Cluster two_servers() {
  std::vector<std::vector<std::pair<std::string, std::string>>> rails(2);
  for (int node = 0; node < 2; ++node) {
    for (int rail = 0; rail < 8; ++rail) {
      rails[static_cast<std::size_t>(node)].emplace_back(
          "enp" + std::to_string(24 + rail) + "s0np0",
          "10.0." + std::to_string(rail) + "." + std::to_string(node + 1) + "/24");
    }
  }
  spec::Cluster cluster{
      .name = "rack", .hardware = "b300", .fabric = spec::Fabric{.topology = spec::Topology::kSwitch}};
  for (std::size_t node = 0; node < 2; ++node) {
    spec::ClusterNode& made = cluster.nodes.emplace_back();
    made.name = "b300-" + std::to_string(node + 1);
    made.address = made.name;
    for (const auto& [interface, address] : rails[node]) made.rails.push_back({interface, *parse_ipv4_prefix(address)});
  }
  return cluster;
}

TEST(PathLimit, OfServersIsAllRailsBetweenAndNvlinkInside) {
  const auto between = limit_of(two_servers(), {.ranks = 16, .transport = rank::Transport::kNccl});
  ASSERT_TRUE(between);
  EXPECT_DOUBLE_EQ(between->whole().value, 800e9) << "8 x 800 Gb/s";
  EXPECT_DOUBLE_EQ(between->excess, 2 * 15.0 / 16) << "a tree over two nodes";
  spec::Cluster one = two_servers();
  one.nodes.pop_back();
  const auto inside = limit_of(one, {.ranks = 8, .transport = rank::Transport::kNccl});
  ASSERT_TRUE(inside);
  EXPECT_DOUBLE_EQ(inside->whole().value, 900e9);
  EXPECT_NE(inside->path.find("NVLink"), std::string::npos);
  EXPECT_GT(inside->excess, 1);
  EXPECT_FALSE(limit_of(one, {.ranks = 8})) << "what is not NCCL does not use NVLink";
}

TEST(PathLimit, TakesTheRateOfTheClusterFileAndScalesTheNicWithIt) {
  spec::Cluster ring = link::test_ring(3);
  ring.fabric->rail_rate = BitsPerSecond{2e9};
  EXPECT_DOUBLE_EQ(limit_in_gbit(ring, {.ranks = 3}), 4);
  ring.hardware.reset();  // nothing is known of the NIC: four rails
  EXPECT_DOUBLE_EQ(limit_in_gbit(ring, {.ranks = 3}), 8);
}

TEST(PathLimit, OfSeveralRanksOnANodeCountsWhatLeavesIt) {
  // Of the three parts that a rank sends one stays on its node; the node's two ranks share its rails.
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_pair(), {.ranks = 4}), 150);
}

TEST(PathLimit, OfABroadcastIsSharedByAllReceivers) {
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_switch(4), {.kind = comm::CollectiveKind::kBroadcast, .ranks = 4}),
                   200.0 / 3);
  EXPECT_DOUBLE_EQ(limit_in_gbit(link::test_switch(4), {.kind = comm::CollectiveKind::kAllToAll, .ranks = 4}), 200);
}

TEST(PathLimit, WithoutRailsInTheFileIsTheManagementNetworks) {
  spec::Cluster cluster = link::test_pair();
  for (spec::ClusterNode& node : cluster.nodes) node.rails.clear();
  const auto limit = limit_of(cluster, {.ranks = 2});
  ASSERT_TRUE(limit);
  EXPECT_DOUBLE_EQ(limit->whole().value / kGb, 10);
  EXPECT_EQ(limit->path, "the management network");
}

TEST(PathLimit, IsUnknownInAnUnshapedLabAndOnOneNode) {
  spec::Cluster cluster = link::test_pair();
  EXPECT_FALSE(limit_of(cluster, {.ranks = 1}));
  cluster.lab = "lab";
  EXPECT_FALSE(limit_of(cluster, {.ranks = 2}));
}

}  // namespace
}  // namespace yoke::bench
