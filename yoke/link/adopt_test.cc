#include "yoke/link/adopt.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/link/discover.h"
#include "yoke/probe/probe.h"

namespace yoke::link {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A captured machine as one of several nodes that are cabled as `numbers` of its addresses say.
FoundNode captured(const std::string& fixture, int number) {
  FoundNode node;
  node.report.machine =
      probe::probe_machine(probe::load_capture(std::string(YOKE_SOURCE_DIR) + "/tests/fixtures/" + fixture));
  node.report.machine.hostname = fmt::format("spark-{}", number);
  for (spec::NetworkInterface& interface : node.report.machine.interfaces) {
    if (interface.mac.size() == 17) interface.mac.replace(12, 2, fmt::format("{:02x}", number));
    for (Ipv4Prefix& prefix : interface.addresses) {
      if (interface.port) prefix.address.value = (prefix.address.value & ~0xFFU) | static_cast<unsigned>(number);
      // Two rails in one subnet still have two addresses.
      if (interface.rail == "B") prefix.address.value += 100;
    }
  }
  node.access = {.name = node.report.machine.hostname, .address = fmt::format("10.0.0.{}", number), .user = "nvidia"};
  node.report.identity = node_identity("", node.report.machine);
  return node;
}

std::vector<FoundNode> pair_of(const std::string& fixture) { return {captured(fixture, 1), captured(fixture, 2)}; }

spec::NetworkInterface& interface(FoundNode& node, std::string_view name) {
  for (spec::NetworkInterface& one : node.report.machine.interfaces) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no such interface");
}

void without_addresses(std::vector<FoundNode>& nodes) {
  for (FoundNode& node : nodes) {
    for (spec::NetworkInterface& one : node.report.machine.interfaces) {
      if (one.port) one.addresses.clear();
    }
  }
}

// Every end of `port_a` hears the same half of the other node's `port_b`.
void cable(std::vector<spec::Adjacency>& adjacencies, const std::vector<FoundNode>& nodes, int a, int port_a, int b,
           int port_b) {
  const auto ends = [&](int node, int port) {
    std::vector<spec::LinkEnd> found;
    for (const spec::NetworkInterface* one :
         spec::fast_interfaces(nodes[static_cast<std::size_t>(node)].report.machine)) {
      if (one->port == port) found.push_back({node, port, *one->rail, one->name});
    }
    return found;
  };
  for (const spec::LinkEnd& x : ends(a, port_a)) {
    for (const spec::LinkEnd& y : ends(b, port_b)) {
      if (x.rail != y.rail) continue;
      adjacencies.push_back({x, y});
      adjacencies.push_back({y, x});
    }
  }
}

Discovery adopt_pair(std::vector<FoundNode>& nodes, const AdoptOptions& options = {}) {
  std::vector<spec::Adjacency> adjacencies;
  cable(adjacencies, nodes, 0, 0, 1, 0);
  return adopt_cluster(nodes, infer_topology(nodes.size(), adjacencies), options);
}

std::vector<std::string> rails(const spec::Cluster& cluster, std::size_t node) {
  std::vector<std::string> texts;
  for (const spec::Rail& rail : cluster.nodes.at(node).rails) {
    texts.push_back(rail.interface + " " + to_string(rail.address));
  }
  return texts;
}

TEST(Adopt, AHealthyPairIsTakenAsItIs) {
  auto nodes = pair_of("spark-pair");
  const Discovery found = adopt_pair(nodes);
  EXPECT_TRUE(found.adopted);
  ASSERT_TRUE(found.cluster);
  EXPECT_EQ(found.cluster->hardware, "spark");
  EXPECT_EQ(found.cluster->fabric->mtu, 9000);
  EXPECT_EQ(found.cluster->fabric->topology, spec::Topology::kDirect);
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 2U);
  EXPECT_EQ(found.cluster->nodes[1].user, "nvidia");
  for (const std::size_t node : {0U, 1U}) EXPECT_EQ(found.cluster->nodes[node].rails.size(), 2U);
}

TEST(Adopt, NvidiasTwoSparkPlaybookIsRecognizedAndTheWantedMtuStays9000) {
  auto nodes = pair_of("mtu-1500");
  for (FoundNode& node : nodes) {
    const auto number = static_cast<std::uint32_t>(node.access.name.back() - '0');
    interface(node, "enp1s0f0np0").addresses = {
        parse_ipv4_prefix(fmt::format("192.168.100.{}/24", 9 + number)).value()};
    interface(node, "enP2p1s0f0np0").addresses = {
        parse_ipv4_prefix(fmt::format("192.168.101.{}/24", 9 + number)).value()};
  }
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.set_up_by, "NVIDIA's two-Spark playbook");
  EXPECT_EQ(found.cluster->fabric->mtu, 9000);
  EXPECT_THAT(rails(*found.cluster, 0),
              ElementsAre("enp1s0f0np0 192.168.100.10/24", "enP2p1s0f0np0 192.168.101.10/24"));
}

TEST(Adopt, AnAddressIsProposedForTheRailThatAGuideLeftOut) {
  auto nodes = pair_of("spark-pair");
  for (FoundNode& node : nodes) {
    const auto number = static_cast<std::uint32_t>(node.access.name.back() - '0');
    interface(node, "enp1s0f0np0").addresses = {
        parse_ipv4_prefix(fmt::format("192.168.100.{}/24", 9 + number)).value()};
    interface(node, "enP2p1s0f0np0").addresses.clear();
    interface(node, "enP2p1s0f0np0").mtu = 1500;
  }
  const Discovery found = adopt_pair(nodes);
  EXPECT_TRUE(found.adopted);
  EXPECT_EQ(found.proposed.size(), 2U);
  EXPECT_EQ(found.cluster->fabric->mtu, 9000);
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 2U);
  EXPECT_THAT(rails(*found.cluster, 1),
              ElementsAre("enp1s0f0np0 192.168.100.11/24", "enP2p1s0f0np0 192.168.101.11/24"));
}

TEST(Adopt, AProposalBesideOthersKeepsClearOfNetworksInUse) {
  auto nodes = pair_of("spark-pair");
  for (FoundNode& node : nodes) {
    interface(node, "enp1s0f0np0").addresses = {
        parse_ipv4_prefix(fmt::format("192.168.100.{}/24", node.access.name.back())).value()};
    interface(node, "enP2p1s0f0np0").addresses.clear();
  }
  nodes[1].report.machine.routes.push_back(
      {.destination = parse_ipv4_prefix("192.168.101.0/24").value(), .gateway = {}, .interface = "enP7s7"});
  EXPECT_THAT(rails(*adopt_pair(nodes).cluster, 0),
              ElementsAre("enp1s0f0np0 192.168.100.1/24", "enP2p1s0f0np0 192.168.102.1/24"));
}

TEST(Adopt, ALoneEndGetsAnAddressOfItsOtherEndsNetwork) {
  auto nodes = pair_of("spark-pair");
  const Ipv4Prefix there = interface(nodes[0], "enP2p1s0f0np0").addresses.front();
  interface(nodes[1], "enP2p1s0f0np0").addresses.clear();
  const Discovery found = adopt_pair(nodes);
  ASSERT_EQ(found.cluster->nodes[1].rails.size(), 2U);
  EXPECT_EQ(found.cluster->nodes[1].rails[1].address.network(), there.network());
  EXPECT_NE(found.cluster->nodes[1].rails[1].address, there);
}

TEST(Adopt, ARailThatTheFileMarksUnusedStaysOut) {
  auto nodes = pair_of("spark-pair");
  spec::Cluster known{.name = "desk", .nodes = {nodes[0].access, nodes[1].access}};
  for (spec::ClusterNode& node : known.nodes) node.unused = {{"enP2p1s0f0np0", "a test of one rail"}};
  const Discovery found = adopt_pair(nodes, {.known = known});
  EXPECT_EQ(found.cluster->nodes[0].rails.size(), 1U);
  EXPECT_EQ(found.cluster->nodes[0].unused, known.nodes[0].unused);
}

TEST(Adopt, BothRailsInOneSubnetAreKeptSoAndNoSubnetsAreClaimed) {
  auto nodes = pair_of("same-subnet");
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.set_up_by, "NVIDIA's cluster script");
  EXPECT_THAT(found.cluster->fabric->subnets, IsEmpty());
  EXPECT_EQ(found.cluster->nodes[0].rails.size(), 2U);
}

TEST(Adopt, LinkLocalAddressesOfFirstRailsAreAdoptedAndTheOthersLeftOut) {
  auto nodes = pair_of("link-local");
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.set_up_by, "NVIDIA's netplan file for link-local addresses");
  EXPECT_EQ(found.cluster->nodes[0].rails.size(), 1U);
  EXPECT_TRUE(is_link_local(found.cluster->nodes[0].rails[0].address));
}

TEST(Adopt, AnAddressThatSomebodyGaveComesBeforeASelfGivenOne) {
  auto nodes = pair_of("spark-pair");
  const Ipv4Prefix given = interface(nodes[0], "enp1s0f0np0").addresses.front();
  auto& addresses = interface(nodes[0], "enp1s0f0np0").addresses;
  addresses.insert(addresses.begin(), parse_ipv4_prefix("169.254.3.4/16").value());
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.cluster->nodes[0].rails[0].address, given);
}

TEST(Adopt, SparkVllmDockerIsRecognizedByItsNetplanFile) {
  auto nodes = pair_of("spark-pair");
  nodes[1].report.netplan = {"50-cloud-init.yaml", "98-spark-vllm-docker.yaml"};
  EXPECT_EQ(adopt_pair(nodes).set_up_by, "spark-vllm-docker");
}

TEST(Adopt, EndsInDifferentSubnetsAreAdoptedWithoutSubnets) {
  auto nodes = pair_of("spark-pair");
  interface(nodes[1], "enp1s0f0np0").addresses = {parse_ipv4_prefix("192.168.55.2/24").value()};
  interface(nodes[1], "enP2p1s0f0np0").mtu = 1500;
  const Discovery found = adopt_pair(nodes);
  EXPECT_THAT(found.cluster->fabric->subnets, IsEmpty());
}

TEST(Adopt, OneAddressOnTwoNodesIsRefusedWithTheWayOut) {
  auto nodes = pair_of("spark-pair");
  interface(nodes[1], "enp1s0f0np0").addresses = interface(nodes[0], "enp1s0f0np0").addresses;
  try {
    adopt_pair(nodes);
    FAIL() << "it was adopted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    EXPECT_NE(error.hint().find("--new-addresses"), std::string::npos);
  }
  EXPECT_NO_THROW(adopt_pair(nodes, {.addresses = AddressChoice::kPropose}));
}

TEST(Adopt, WithoutAddressesASubnetForEachRailIsProposed) {
  auto nodes = pair_of("spark-pair");
  without_addresses(nodes);
  const Discovery found = adopt_pair(nodes);
  EXPECT_FALSE(found.adopted);
  EXPECT_EQ(found.set_up_by, "nobody yet");
  EXPECT_EQ(found.cluster->fabric->mtu, 9000);
  EXPECT_THAT(rails(*found.cluster, 1), ElementsAre("enp1s0f0np0 192.168.100.2/24", "enP2p1s0f0np0 192.168.101.2/24"));
}

TEST(Adopt, ProposedSubnetsKeepClearOfWhatNodesUse) {
  auto nodes = pair_of("spark-pair");
  without_addresses(nodes);
  nodes[1].report.machine.routes.push_back(
      {.destination = parse_ipv4_prefix("192.168.101.0/24").value(), .gateway = {}, .interface = "enP7s7"});
  EXPECT_THAT(rails(*adopt_pair(nodes).cluster, 0),
              ElementsAre("enp1s0f0np0 172.30.0.1/24", "enP2p1s0f0np0 172.30.1.1/24"));
}

TEST(Adopt, ARingIsPutInOrderAndEachCableHasItsTenNumbers) {
  std::vector<FoundNode> nodes = {captured("spark-ring", 1), captured("spark-ring", 2), captured("spark-ring", 3)};
  without_addresses(nodes);
  std::vector<spec::Adjacency> adjacencies;
  cable(adjacencies, nodes, 0, 0, 2, 1);  // spark-3 is next after spark-1
  cable(adjacencies, nodes, 2, 0, 1, 1);
  cable(adjacencies, nodes, 1, 0, 0, 1);
  const Discovery found = adopt_cluster(nodes, infer_topology(nodes.size(), adjacencies), {});
  ASSERT_TRUE(found.cluster);
  EXPECT_EQ(found.cluster->fabric->topology, spec::Topology::kRing);
  EXPECT_EQ(found.cluster->nodes[1].name, "spark-3");
  EXPECT_EQ(nodes[1].access.name, "spark-3");
  EXPECT_THAT(rails(*found.cluster, 1), ElementsAre("enp1s0f0np0 192.168.110.2/24", "enP2p1s0f0np0 192.168.111.2/24",
                                                    "enp1s0f1np1 192.168.100.2/24", "enP2p1s0f1np1 192.168.101.2/24"));
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 6U);
}

TEST(Adopt, ASwitchThatJoinsAllRailsStillGetsASubnetForEach) {
  auto nodes = pair_of("spark-pair");
  without_addresses(nodes);
  LinkMap map{.segments = {{{{0, 0, "A", "enp1s0f0np0"},
                             {0, 0, "B", "enP2p1s0f0np0"},
                             {1, 0, "A", "enp1s0f0np0"},
                             {1, 0, "B", "enP2p1s0f0np0"}}}},
              .topology = spec::Topology::kSwitch,
              .order = {0, 1}};
  const Discovery found = adopt_cluster(nodes, map, {});
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 2U);
  EXPECT_THAT(rails(*found.cluster, 1), ElementsAre("enp1s0f0np0 192.168.100.2/24", "enP2p1s0f0np0 192.168.101.2/24"));
}

TEST(Adopt, ACableWithOneRailMissingIsWrittenWithoutSubnets) {
  auto nodes = pair_of("spark-pair");
  const spec::LinkEnd a{0, 0, "A", "enp1s0f0np0"};
  const spec::LinkEnd b{1, 0, "A", "enp1s0f0np0"};
  const Discovery found = adopt_cluster(nodes, infer_topology(nodes.size(), {{a, b}, {b, a}}), {});
  ASSERT_TRUE(found.cluster);
  EXPECT_THAT(found.cluster->fabric->subnets, IsEmpty());
  EXPECT_EQ(found.cluster->nodes[0].rails.size(), 1U);
}

TEST(Adopt, WhatAFileKnewStays) {
  auto nodes = pair_of("spark-pair");
  const spec::Cluster known{
      .name = "desk",
      .fabric = spec::Fabric{.topology = spec::Topology::kSwitch, .rail_rate = BitsPerSecond{2e9}},
      .compute = spec::Compute{BytesPerSecond{1e9}},
      .lab = "lab"};
  const Discovery found = adopt_pair(nodes, {.known = known});
  EXPECT_EQ(found.cluster->name, "desk");
  EXPECT_EQ(found.cluster->lab, "lab");
  EXPECT_EQ(found.cluster->fabric->rail_rate, BitsPerSecond{2e9});
  EXPECT_EQ(found.cluster->fabric->topology, spec::Topology::kSwitch);
  EXPECT_EQ(found.cluster->compute, known.compute);
}

TEST(Adopt, NodesOfDifferentKindsHaveNoHardwareName) {
  auto nodes = pair_of("spark-pair");
  nodes[1].report.machine.gpus.clear();
  EXPECT_EQ(adopt_pair(nodes).cluster->hardware, std::nullopt);
}

TEST(Adopt, UnknownCablingGivesNoFile) {
  auto nodes = pair_of("spark-pair");
  const Discovery found = adopt_cluster(nodes, infer_topology(nodes.size(), {}), {});
  EXPECT_FALSE(found.cluster);
}

}  // namespace
}  // namespace yoke::link
