#include "yoke/link/pairs.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/link/cluster_testing.h"

namespace yoke::link {
namespace {

std::vector<std::pair<int, int>> nodes_of(const std::vector<NodePair>& pairs) {
  std::vector<std::pair<int, int>> nodes;
  for (const NodePair& pair : pairs) nodes.emplace_back(pair.a, pair.b);
  return nodes;
}
using Nodes = std::vector<std::pair<int, int>>;

TEST(Pairs, ACableJoinsTwoNodesByBothRails) {
  const auto pairs = pairs_of(test_pair(), {});
  ASSERT_EQ(nodes_of(pairs), (Nodes{{0, 1}}));
  ASSERT_EQ(pairs[0].rails.size(), 2U);
  EXPECT_EQ(pairs[0].rails[1].name, "B");
  EXPECT_EQ(pairs[0].rails[1].a, (RailPlace{"192.168.101.1", "enP2p1s0f0np0"}));
  EXPECT_EQ(pairs[0].rails[1].b, (RailPlace{"192.168.101.2", "enP2p1s0f0np0"}));
}

TEST(Pairs, ARingIsMeasuredCableByCable) {
  EXPECT_EQ(nodes_of(pairs_of(test_ring(3), {})), (Nodes{{0, 1}, {0, 2}, {1, 2}}));
  const auto four = pairs_of(test_ring(4), {});
  EXPECT_EQ(nodes_of(four), (Nodes{{0, 1}, {0, 3}, {1, 2}, {2, 3}})) << "no diagonal: there is no cable";
  EXPECT_EQ(four[1].rails[0].a.interface, "enp1s0f1np1") << "port 1 of the first is cabled to port 0 of the last";
  EXPECT_EQ(four[1].rails[0].b.interface, "enp1s0f0np0");
}

TEST(Pairs, AMeshIsMeasuredLinkByLink) {
  const auto pairs = pairs_of(test_mesh(), {});
  EXPECT_EQ(nodes_of(pairs), (Nodes{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
  for (const NodePair& pair : pairs) EXPECT_EQ(pair.rails.size(), 1U) << pair.a << pair.b;
  EXPECT_EQ(pairs[2].rails[0].a.interface, "enp1s0f1np1");
}

TEST(Pairs, BehindASwitchEveryNodeMeetsTheNextAndTheLastTheFirst) {
  EXPECT_EQ(nodes_of(pairs_of(test_switch(5), {})), (Nodes{{0, 1}, {0, 4}, {1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(nodes_of(pairs_of(test_switch(5), {.node = "spark-3"})).size(), 4U) << "asked for, all that join it";
}

TEST(Pairs, RailsInOneSubnetArePairedPlaceByPlace) {
  const auto pairs = pairs_of(test_cluster("direct", {{{"a0", "192.168.9.1/24"}, {"b0", "192.168.9.2/24"}},
                                                      {{"a1", "192.168.9.3/24"}, {"b1", "192.168.9.4/24"}}}),
                              {});
  ASSERT_EQ(pairs.at(0).rails.size(), 2U);
  EXPECT_EQ(pairs[0].rails[0].b.interface, "a1");
  EXPECT_EQ(pairs[0].rails[1].b.interface, "b1");
}

TEST(Pairs, ChoosesOneRail) {
  const auto pairs = pairs_of(test_pair(), {.rail = "B"});
  ASSERT_EQ(pairs.at(0).rails.size(), 1U);
  EXPECT_EQ(pairs[0].rails[0].name, "B");
}

TEST(Pairs, WhatCannotBeMeasuredIsReportedWithAHint) {
  EXPECT_ERROR(pairs_of(test_pair(), {.rail = "C"}), ErrorCode::kUsage, "no rail 'C'", "A, B");
  EXPECT_ERROR(pairs_of(test_pair(), {.node = "spark-3"}), ErrorCode::kUsage, "no node 'spark-3'", "spark-");
  EXPECT_ERROR(pairs_of(test_cluster("direct", {{}, {}}), {}), ErrorCode::kInvalid, "lists no rails of 'spark-1'",
               "yoke link discover -o cluster.yaml --force");
  EXPECT_ERROR(pairs_of(test_cluster("direct", {{}}), {}), ErrorCode::kInvalid, "one node", "add");
  EXPECT_ERROR(pairs_of(test_cluster("direct", {{{"a", "10.1.0.1/24"}}, {{"a", "10.2.0.1/24"}}}), {}),
               ErrorCode::kInvalid, "in one subnet", "one network");
}

}  // namespace
}  // namespace yoke::link
