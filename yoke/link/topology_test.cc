#include "yoke/link/topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Nodes as Sparks: two ports with two halves each.
std::string interface_name(int port, char half) {
  return fmt::format("{}1s0f{}np{}", half == 'A' ? "enp" : "enP2p", port, port);
}

struct Cabling {
  explicit Cabling(int count) {
    for (int i = 0; i < count; ++i) {
      TopologyNode node{.name = fmt::format("spark-{}", i + 1), .ends = {}};
      for (const int port : {0, 1}) {
        for (const char half : {'A', 'B'}) node.ends.push_back({port, {half}, interface_name(port, half)});
      }
      nodes.push_back(std::move(node));
    }
  }
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
      for (int a = 0; a < static_cast<int>(nodes.size()); ++a) {
        for (int b = 0; b < a; ++b) join(end(a, port, half), end(b, port, half));
      }
    }
  }
  LinkMap infer(TopologyOptions options = {}) const { return infer_topology(nodes, sightings, options); }

  std::vector<TopologyNode> nodes;
  std::vector<Sighting> sightings;
};

std::vector<std::string> rules(const LinkMap& map) {
  std::vector<std::string> names;
  for (const Finding& finding : map.findings) names.push_back(finding.rule + ":" + finding.node.value_or("all"));
  return names;
}

TEST(Topology, ACableBetweenTwoNodesIsDirectWithASegmentForEachHalf) {
  Cabling cabling(2);
  cabling.cable(0, 0, 1, 0);
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  ASSERT_EQ(map.segments.size(), 2U);
  EXPECT_THAT(map.segments[0].ends, ElementsAre(Cabling::end(0, 0, 'A'), Cabling::end(1, 0, 'A')));
  EXPECT_THAT(map.segments[1].ends, ElementsAre(Cabling::end(0, 0, 'B'), Cabling::end(1, 0, 'B')));
  EXPECT_THAT(rules(map), IsEmpty());
}

TEST(Topology, TwoCablesAndDifferentPortsAreDirectToo) {
  Cabling cabling(2);
  cabling.cable(0, 0, 1, 1);
  cabling.cable(0, 1, 1, 0);
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 4U);
  EXPECT_THAT(rules(map), IsEmpty());
}

TEST(Topology, ThreeAndFourInARingAreOrderedFromTheHeadsFirstPort) {
  Cabling three(3);
  three.ring({0, 2, 1});
  EXPECT_EQ(three.infer().topology, Topology::kRing);
  EXPECT_THAT(three.infer().order, ElementsAre(0, 2, 1));
  EXPECT_THAT(rules(three.infer()), IsEmpty());

  Cabling four(4);
  four.ring({0, 3, 1, 2});
  EXPECT_EQ(four.infer().topology, Topology::kRing);
  EXPECT_THAT(four.infer().order, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(four.infer().segments.size(), 8U);
  EXPECT_THAT(rules(four.infer()), IsEmpty());
}

TEST(Topology, EveryoneSeesEveryoneOnEachHalfIsASwitch) {
  for (const int count : {3, 4, 8}) {
    Cabling cabling(count);
    cabling.switched(0);
    const LinkMap map = cabling.infer();
    EXPECT_EQ(map.topology, Topology::kSwitch) << count;
    EXPECT_EQ(map.segments.size(), 2U) << count;
    EXPECT_THAT(rules(map), IsEmpty()) << count;
  }
}

TEST(Topology, ASwitchThatJoinsAllHalvesIsOneSegmentAndNothingIsCrossedOrLooped) {
  Cabling cabling(2);
  std::vector<LinkEnd> ends;
  for (const int node : {0, 1}) {
    for (const char half : {'A', 'B'}) ends.push_back(Cabling::end(node, 0, half));
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
  EXPECT_THAT(rules(map), IsEmpty());
}

TEST(Topology, ASwitchBetweenTwoIsKnownByItsOwnWordOnly) {
  Cabling cabling(2);
  cabling.cable(0, 0, 1, 0);
  EXPECT_EQ(cabling.infer({.switch_seen = true}).topology, Topology::kSwitch);
  EXPECT_EQ(cabling.infer({.switch_seen = false}).topology, Topology::kDirect);
}

TEST(Topology, AMissingHalfIsToldOnBothEndsWithItsState) {
  Cabling cabling(2);
  cabling.join(Cabling::end(0, 0, 'A'), Cabling::end(1, 0, 'A'));
  cabling.nodes[0].ends[1].carrier = false;
  cabling.nodes[1].ends[1].up = false;
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  ASSERT_THAT(rules(map), ElementsAre("half-down:spark-1", "half-down:spark-2"));
  EXPECT_NE(map.findings[0].evidence.find("enP2p1s0f0np0 has no carrier"), std::string::npos);
  EXPECT_NE(map.findings[1].evidence.find("is switched off"), std::string::npos);
  EXPECT_EQ(map.findings[1].subject, "enP2p1s0f0np0");
  EXPECT_EQ(map.findings[1].fix, "ip link set enP2p1s0f0np0 up, then discover again");
}

TEST(Topology, AHalfThatHasACarrierAndReachesNobodyIsSilent) {
  Cabling cabling(2);
  cabling.join(Cabling::end(0, 0, 'A'), Cabling::end(1, 0, 'A'));
  const LinkMap map = cabling.infer();
  ASSERT_THAT(rules(map), ElementsAre("half-silent:spark-1", "half-silent:spark-2"));
  EXPECT_NE(map.findings[0].evidence.find("enP2p1s0f0np0 has a carrier"), std::string::npos);
}

TEST(Topology, CrossedHalvesAreToldAndStillJoinTheNodes) {
  Cabling cabling(2);
  cabling.join(Cabling::end(0, 0, 'A'), Cabling::end(1, 0, 'B'));
  cabling.join(Cabling::end(0, 0, 'B'), Cabling::end(1, 0, 'A'));
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  EXPECT_THAT(rules(map), ElementsAre("halves-crossed:spark-1", "halves-crossed:spark-1"));
}

TEST(Topology, ACableThatLoopsBackIsToldAndJoinsNothing) {
  Cabling cabling(2);
  cabling.cable(0, 0, 0, 1);
  const LinkMap alone = cabling.infer();
  EXPECT_EQ(alone.topology, std::nullopt);
  EXPECT_THAT(alone.segments, IsEmpty());
  EXPECT_THAT(rules(alone), ElementsAre("cable-loop:spark-1", "cable-loop:spark-1", "node-silent:spark-1",
                                        "node-silent:spark-2", "topology-unknown:all"));
}

TEST(Topology, LostFramesBetweenSomeOfManyDoNoHarm) {
  Cabling cabling(4);
  cabling.switched(0);
  const Sighting lost{Cabling::end(1, 0, 'A'), Cabling::end(2, 0, 'A')};
  std::erase_if(cabling.sightings, [&](const Sighting& s) { return s == lost || s == Sighting{lost.from, lost.by}; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kSwitch);
  EXPECT_EQ(map.segments.size(), 2U);
  EXPECT_THAT(rules(map), IsEmpty());
}

TEST(Topology, WhatIsHeardOneWayOnlyNamesTheDeafNode) {
  Cabling cabling(2);
  cabling.cable(0, 0, 1, 0);
  std::erase(cabling.sightings, Sighting{Cabling::end(1, 0, 'B'), Cabling::end(0, 0, 'B')});
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, Topology::kDirect);
  EXPECT_EQ(map.segments.size(), 2U);
  ASSERT_THAT(rules(map), ElementsAre("one-way:spark-2"));
  EXPECT_EQ(map.findings[0].what, "spark-2 does not hear spark-1");
}

TEST(Topology, ASilentNodeBehindASwitchIsNamedAndThereIsNoTopology) {
  Cabling cabling(3);
  cabling.switched(0);
  std::erase_if(cabling.sightings, [](const Sighting& s) { return s.by.node == 2 || s.from.node == 2; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, std::nullopt);
  EXPECT_THAT(rules(map), ElementsAre("node-silent:spark-3", "topology-unknown:all"));
}

TEST(Topology, ARingWithoutOneCableIsNone) {
  Cabling cabling(4);
  cabling.ring({0, 1, 2, 3});
  std::erase_if(cabling.sightings,
                [](const Sighting& s) { return (s.by.node + s.from.node) == 3 && s.by.node % 3 == 0; });
  const LinkMap map = cabling.infer();
  EXPECT_EQ(map.topology, std::nullopt);
  ASSERT_THAT(rules(map), ElementsAre("topology-unknown:all"));
  EXPECT_EQ(map.findings[0].evidence, "joined are spark-1-spark-2, spark-2-spark-3, spark-3-spark-4");
}

TEST(Topology, TwoPairsAreNoCluster) {
  Cabling cabling(4);
  cabling.cable(0, 0, 1, 0);
  cabling.cable(2, 0, 3, 0);
  EXPECT_EQ(cabling.infer().topology, std::nullopt);
}

TEST(Topology, TwoRingsAreNotOne) {
  Cabling cabling(6);
  cabling.ring({0, 1, 2});
  cabling.ring({3, 4, 5});
  EXPECT_EQ(cabling.infer().topology, std::nullopt);
}

TEST(Topology, NothingFollowsFromSilenceWhereNoBeaconsWereSent) {
  Cabling cabling(2);
  cabling.hears(Cabling::end(0, 0, 'A'), Cabling::end(1, 0, 'A'));
  const LinkMap map = cabling.infer({.source = SightingSource::kAddresses});
  EXPECT_EQ(map.topology, Topology::kDirect);
  EXPECT_THAT(rules(map), IsEmpty());
}

TEST(Topology, NobodyHeardIsToldForEachNode) {
  EXPECT_THAT(rules(Cabling(2).infer()),
              ElementsAre("node-silent:spark-1", "node-silent:spark-2", "topology-unknown:all"));
  EXPECT_THAT(rules(Cabling(0).infer()), ElementsAre("topology-unknown:all"));
}

}  // namespace
}  // namespace yoke
