#include "yoke/link/topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace yoke::link {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of Sparks: two ports with two halves each.
std::string interface_name(int port, char rail) {
  return fmt::format("{}1s0f{}np{}", rail == 'A' ? "enp" : "enP2p", port, port);
}

struct Cables {
  explicit Cables(int count) : nodes(count) {}
  static spec::LinkEnd end(int node, int port, char rail) { return {node, port, {rail}, interface_name(port, rail)}; }
  void hears(const spec::LinkEnd& by, const spec::LinkEnd& from) { adjacencies.push_back({by, from}); }
  void join(const spec::LinkEnd& a, const spec::LinkEnd& b) {
    hears(a, b);
    hears(b, a);
  }
  void cable(int node_a, int port_a, int node_b, int port_b) {
    for (const char rail : {'A', 'B'}) join(end(node_a, port_a, rail), end(node_b, port_b, rail));
  }
  void ring(const std::vector<int>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) cable(order[i], 0, order[(i + 1) % order.size()], 1);
  }
  // Every end of `port` hears every other one of the same rail.
  void switched(int port) {
    for (const char rail : {'A', 'B'}) {
      for (int a = 0; a < nodes; ++a) {
        for (int b = 0; b < a; ++b) join(end(a, port, rail), end(b, port, rail));
      }
    }
  }
  LinkMap infer(TopologyOptions options = {}) const {
    return infer_topology(static_cast<std::size_t>(nodes), adjacencies, options);
  }

  int nodes;
  std::vector<spec::Adjacency> adjacencies;
};

TEST(Topology, ACableBetweenTwoNodesIsDirectWithASegmentForEachRail) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 0);
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, spec::Topology::kDirect);
  ASSERT_EQ(map.segments.size(), 2U);
  EXPECT_THAT(map.segments[0].ends, ElementsAre(Cables::end(0, 0, 'A'), Cables::end(1, 0, 'A')));
  EXPECT_THAT(map.segments[1].ends, ElementsAre(Cables::end(0, 0, 'B'), Cables::end(1, 0, 'B')));
}

TEST(Topology, TwoCablesAndDifferentPortsAreDirectToo) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 1);
  cabling.cable(0, 1, 1, 0);
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, spec::Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 4U);
}

TEST(Topology, ThreeAndFourInARingAreOrderedFromTheHeadsFirstPort) {
  Cables three(3);
  three.ring({0, 2, 1});
  EXPECT_EQ(three.infer().topology, spec::Topology::kRing);
  EXPECT_THAT(three.infer().order, ElementsAre(0, 2, 1));

  Cables four(4);
  four.ring({0, 3, 1, 2});
  EXPECT_EQ(four.infer().topology, spec::Topology::kRing);
  EXPECT_THAT(four.infer().order, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(four.infer().segments.size(), 8U);
}

// Each port is two links by breakout optics: three of a node's four halves lead to the three others.
Cables cabled_as_mesh() {
  Cables mesh(4);
  std::array<int, 4> used{};  // halves in the order of the peers: both ends of a link may differ
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      const int half_a = used[static_cast<std::size_t>(a)]++;
      const int half_b = used[static_cast<std::size_t>(b)]++;
      mesh.join(Cables::end(a, half_a / 2, half_a % 2 == 0 ? 'A' : 'B'),
                Cables::end(b, half_b / 2, half_b % 2 == 0 ? 'A' : 'B'));
    }
  }
  return mesh;
}

TEST(Topology, FourWithALinkBetweenEachTwoAreAMesh) {
  Cables mesh = cabled_as_mesh();
  EXPECT_EQ(mesh.infer().topology, spec::Topology::kMesh);
  EXPECT_EQ(mesh.infer().segments.size(), 6U);
  EXPECT_THAT(mesh.infer().order, ElementsAre(0, 1, 2, 3));
  mesh.adjacencies.resize(10);  // a pair has lost its link
  EXPECT_EQ(mesh.infer().topology, std::nullopt);
  Cables ring(4);
  ring.ring({0, 1, 2, 3});
  EXPECT_EQ(ring.infer().topology, spec::Topology::kRing);
  Cables three(3);
  three.ring({0, 1, 2});
  EXPECT_EQ(three.infer().topology, spec::Topology::kRing) << "all are joined, by whole cables";
}

TEST(Topology, PortsAreSplitWhereTheirHalvesLeadToDifferentNodes) {
  const auto cabling_of = [](const Cables& cables) { return spec::Cabling{.segments = cables.infer().segments}; };
  Cables mesh = cabled_as_mesh();
  EXPECT_TRUE(spec::has_split_ports(cabling_of(mesh)));
  mesh.adjacencies.resize(10);
  EXPECT_TRUE(spec::has_split_ports(cabling_of(mesh)));
  Cables ring(4);
  ring.ring({0, 1, 2, 3});
  EXPECT_FALSE(spec::has_split_ports(cabling_of(ring)));
  Cables four(4);
  four.switched(0);
  EXPECT_FALSE(spec::has_split_ports(cabling_of(four)));
}

TEST(Topology, EveryoneSeesEveryoneOnEachRailIsASwitch) {
  for (const int count : {3, 4, 8}) {
    Cables cabling(count);
    cabling.switched(0);
    const LinkMap map = cabling.infer();
    EXPECT_EQ(map.topology, spec::Topology::kSwitch) << count;
    EXPECT_EQ(map.segments.size(), 2U) << count;
  }
}

TEST(Topology, ASwitchThatJoinsAllRailsIsOneSegmentAndNothingIsCrossedOrLooped) {
  Cables cabling(2);
  std::vector<spec::LinkEnd> ends;
  for (const int node : {0, 1}) {
    for (const char rail : {'A', 'B'}) ends.push_back(Cables::end(node, 0, rail));
  }
  for (const spec::LinkEnd& a : ends) {
    for (const spec::LinkEnd& b : ends) {
      if (a < b) cabling.join(a, b);
    }
  }
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, spec::Topology::kSwitch);
  ASSERT_EQ(map.segments.size(), 1U);
  EXPECT_EQ(map.segments[0].ends.size(), 4U);
}

TEST(Topology, ASwitchBetweenTwoIsKnownByItsOwnWordOnly) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 0);
  EXPECT_EQ(cabling.infer({.switch_seen = true}).topology, spec::Topology::kSwitch);
  EXPECT_EQ(cabling.infer({.switch_seen = false}).topology, spec::Topology::kDirect);
}

TEST(Topology, CrossedRailsStillJoinTheNodes) {
  Cables cabling(2);
  cabling.join(Cables::end(0, 0, 'A'), Cables::end(1, 0, 'B'));
  cabling.join(Cables::end(0, 0, 'B'), Cables::end(1, 0, 'A'));
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, spec::Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 2U);
}

TEST(Topology, ACableThatLoopsBackIsALoopAndJoinsNothing) {
  Cables cabling(2);
  cabling.cable(0, 0, 0, 1);
  const LinkMap alone = cabling.infer();
  EXPECT_EQ(alone.topology, std::nullopt);
  EXPECT_THAT(alone.segments, IsEmpty());
  EXPECT_EQ(alone.loops.size(), 2U);
}

TEST(Topology, LostFramesBetweenSomeOfManyDoNoHarm) {
  Cables cabling(4);
  cabling.switched(0);
  const spec::Adjacency lost{Cables::end(1, 0, 'A'), Cables::end(2, 0, 'A')};
  std::erase_if(cabling.adjacencies, [&](const spec::Adjacency& s) {
    return s == lost || s == spec::Adjacency{lost.from, lost.by};
  });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, spec::Topology::kSwitch);
  EXPECT_EQ(map.segments.size(), 2U);
}

TEST(Topology, WhatIsHeardOneWayOnlyJoinsAllTheSame) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 0);
  std::erase(cabling.adjacencies, spec::Adjacency{Cables::end(1, 0, 'B'), Cables::end(0, 0, 'B')});
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, spec::Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 2U);
}

TEST(Topology, WithASilentNodeBehindASwitchThereIsNoTopology) {
  Cables cabling(3);
  cabling.switched(0);
  std::erase_if(cabling.adjacencies, [](const spec::Adjacency& s) { return s.by.node == 2 || s.from.node == 2; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, std::nullopt);
}

TEST(Topology, ARingWithoutOneCableIsNone) {
  Cables cabling(4);
  cabling.ring({0, 1, 2, 3});
  std::erase_if(cabling.adjacencies,
                [](const spec::Adjacency& s) { return (s.by.node + s.from.node) == 3 && s.by.node % 3 == 0; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, std::nullopt);
  EXPECT_EQ(map.segments.size(), 6U);
}

TEST(Topology, TwoPairsAreNoCluster) {
  Cables cabling(4);
  cabling.cable(0, 0, 1, 0);
  cabling.cable(2, 0, 3, 0);
  EXPECT_EQ(cabling.infer().topology, std::nullopt);
}

TEST(Topology, TwoRingsAreNotOne) {
  Cables cabling(6);
  cabling.ring({0, 1, 2});
  cabling.ring({3, 4, 5});
  EXPECT_EQ(cabling.infer().topology, std::nullopt);
}

}  // namespace
}  // namespace yoke::link
