#include "yoke/link/topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of Sparks: two ports with two halves each.
std::string interface_name(int port, char half) {
  return fmt::format("{}1s0f{}np{}", half == 'A' ? "enp" : "enP2p", port, port);
}

struct Cables {
  explicit Cables(int count) : nodes(count) {}
  static LinkEnd end(int node, int port, char half) { return {node, port, {half}, interface_name(port, half)}; }
  void hears(const LinkEnd& by, const LinkEnd& from) { sightings.push_back({by, from}); }
  void join(const LinkEnd& a, const LinkEnd& b) {
    hears(a, b);
    hears(b, a);
  }
  void cable(int node_a, int port_a, int node_b, int port_b) {
    for (const char half : {'A', 'B'}) join(end(node_a, port_a, half), end(node_b, port_b, half));
  }
  void ring(const std::vector<int>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) cable(order[i], 0, order[(i + 1) % order.size()], 1);
  }
  // Every end of `port` hears every other one of the same half.
  void switched(int port) {
    for (const char half : {'A', 'B'}) {
      for (int a = 0; a < nodes; ++a) {
        for (int b = 0; b < a; ++b) join(end(a, port, half), end(b, port, half));
      }
    }
  }
  LinkMap infer(TopologyOptions options = {}) const {
    return infer_topology(static_cast<std::size_t>(nodes), sightings, options);
  }

  int nodes;
  std::vector<Sighting> sightings;
};

TEST(Topology, ACableBetweenTwoNodesIsDirectWithASegmentForEachHalf) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 0);
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  ASSERT_EQ(map.segments.size(), 2U);
  EXPECT_THAT(map.segments[0].ends, ElementsAre(Cables::end(0, 0, 'A'), Cables::end(1, 0, 'A')));
  EXPECT_THAT(map.segments[1].ends, ElementsAre(Cables::end(0, 0, 'B'), Cables::end(1, 0, 'B')));
}

TEST(Topology, TwoCablesAndDifferentPortsAreDirectToo) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 1);
  cabling.cable(0, 1, 1, 0);
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 4U);
}

TEST(Topology, ThreeAndFourInARingAreOrderedFromTheHeadsFirstPort) {
  Cables three(3);
  three.ring({0, 2, 1});
  EXPECT_EQ(three.infer().topology, Topology::kRing);
  EXPECT_THAT(three.infer().order, ElementsAre(0, 2, 1));

  Cables four(4);
  four.ring({0, 3, 1, 2});
  EXPECT_EQ(four.infer().topology, Topology::kRing);
  EXPECT_THAT(four.infer().order, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(four.infer().segments.size(), 8U);
}

TEST(Topology, EveryoneSeesEveryoneOnEachHalfIsASwitch) {
  for (const int count : {3, 4, 8}) {
    Cables cabling(count);
    cabling.switched(0);
    const LinkMap map = cabling.infer();
    EXPECT_EQ(map.topology, Topology::kSwitch) << count;
    EXPECT_EQ(map.segments.size(), 2U) << count;
  }
}

TEST(Topology, ASwitchThatJoinsAllHalvesIsOneSegmentAndNothingIsCrossedOrLooped) {
  Cables cabling(2);
  std::vector<LinkEnd> ends;
  for (const int node : {0, 1}) {
    for (const char half : {'A', 'B'}) ends.push_back(Cables::end(node, 0, half));
  }
  for (const LinkEnd& a : ends) {
    for (const LinkEnd& b : ends) {
      if (a < b) cabling.join(a, b);
    }
  }
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kSwitch);
  ASSERT_EQ(map.segments.size(), 1U);
  EXPECT_EQ(map.segments[0].ends.size(), 4U);
}

TEST(Topology, ASwitchBetweenTwoIsKnownByItsOwnWordOnly) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 0);
  EXPECT_EQ(cabling.infer({.switch_seen = true}).topology, Topology::kSwitch);
  EXPECT_EQ(cabling.infer({.switch_seen = false}).topology, Topology::kDirect);
}

TEST(Topology, CrossedHalvesStillJoinTheNodes) {
  Cables cabling(2);
  cabling.join(Cables::end(0, 0, 'A'), Cables::end(1, 0, 'B'));
  cabling.join(Cables::end(0, 0, 'B'), Cables::end(1, 0, 'A'));
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
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
  const Sighting lost{Cables::end(1, 0, 'A'), Cables::end(2, 0, 'A')};
  std::erase_if(cabling.sightings, [&](const Sighting& s) { return s == lost || s == Sighting{lost.from, lost.by}; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kSwitch);
  EXPECT_EQ(map.segments.size(), 2U);
}

TEST(Topology, WhatIsHeardOneWayOnlyJoinsAllTheSame) {
  Cables cabling(2);
  cabling.cable(0, 0, 1, 0);
  std::erase(cabling.sightings, Sighting{Cables::end(1, 0, 'B'), Cables::end(0, 0, 'B')});
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 2U);
}

TEST(Topology, WithASilentNodeBehindASwitchThereIsNoTopology) {
  Cables cabling(3);
  cabling.switched(0);
  std::erase_if(cabling.sightings, [](const Sighting& s) { return s.by.node == 2 || s.from.node == 2; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, std::nullopt);
}

TEST(Topology, ARingWithoutOneCableIsNone) {
  Cables cabling(4);
  cabling.ring({0, 1, 2, 3});
  std::erase_if(cabling.sightings,
                [](const Sighting& s) { return (s.by.node + s.from.node) == 3 && s.by.node % 3 == 0; });
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
}  // namespace yoke
