#include "yoke/link/adopt.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/link/discover.h"
#include "yoke/probe/probe.h"

namespace yoke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A captured machine as one of several nodes that are cabled as `numbers` of its addresses say.
FoundNode captured(const std::string& fixture, int number) {
  FoundNode node;
  node.report.machine = probe_machine(load_capture(std::string(YOKE_SOURCE_DIR) + "/tests/fixtures/" + fixture));
  node.report.machine.hostname = fmt::format("spark-{}", number);
  for (NetworkInterface& interface : node.report.machine.interfaces) {
    if (interface.mac.size() == 17) interface.mac.replace(12, 2, fmt::format("{:02x}", number));
    for (Ipv4Prefix& prefix : interface.addresses) {
      if (interface.port) prefix.address.value = (prefix.address.value & ~0xFFU) | static_cast<unsigned>(number);
      // Two halves in one subnet still have two addresses.
      if (interface.half == "B") prefix.address.value += 100;
    }
  }
  node.access = {.name = node.report.machine.hostname, .address = fmt::format("10.0.0.{}", number), .user = "nvidia"};
  node.report.identity = node_identity("", node.report.machine);
  return node;
}

std::vector<FoundNode> pair_of(const std::string& fixture) { return {captured(fixture, 1), captured(fixture, 2)}; }

NetworkInterface& interface(FoundNode& node, std::string_view name) {
  for (NetworkInterface& one : node.report.machine.interfaces) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no such interface");
}

void without_addresses(std::vector<FoundNode>& nodes) {
  for (FoundNode& node : nodes) {
    for (NetworkInterface& one : node.report.machine.interfaces) {
      if (one.port) one.addresses.clear();
    }
  }
}

// Every end of `port_a` hears the same half of the other node's `port_b`.
void cable(std::vector<Sighting>& sightings, const std::vector<FoundNode>& nodes, int a, int port_a, int b,
           int port_b) {
  const auto ends = [&](int node, int port) {
    std::vector<LinkEnd> found;
    for (const NetworkInterface* one : fast_interfaces(nodes[static_cast<std::size_t>(node)].report.machine)) {
      if (one->port == port) found.push_back({node, port, *one->half, one->name});
    }
    return found;
  };
  for (const LinkEnd& x : ends(a, port_a)) {
    for (const LinkEnd& y : ends(b, port_b)) {
      if (x.half != y.half) continue;
      sightings.push_back({x, y});
      sightings.push_back({y, x});
    }
  }
}

Discovery adopt_pair(std::vector<FoundNode>& nodes, const AdoptOptions& options = {}) {
  std::vector<Sighting> sightings;
  cable(sightings, nodes, 0, 0, 1, 0);
  return adopt_cluster(nodes, infer_topology(nodes.size(), sightings), options);
}

std::vector<std::string> halves(const Cluster& cluster, std::size_t node) {
  std::vector<std::string> texts;
  for (const Half& half : cluster.nodes.at(node).halves) {
    texts.push_back(half.interface + " " + to_string(half.address));
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
  EXPECT_EQ(found.cluster->fabric->topology, Topology::kDirect);
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 2U);
  EXPECT_EQ(found.cluster->nodes[1].user, "nvidia");
  for (const std::size_t node : {0U, 1U}) EXPECT_EQ(found.cluster->nodes[node].halves.size(), 2U);
}

TEST(Adopt, NvidiasTwoSparkPlaybookIsRecognizedWithItsMtu) {
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
  EXPECT_EQ(found.cluster->fabric->mtu, 1500);
  EXPECT_THAT(halves(*found.cluster, 0),
              ElementsAre("enp1s0f0np0 192.168.100.10/24", "enP2p1s0f0np0 192.168.101.10/24"));
}

TEST(Adopt, BothHalvesInOneSubnetAreKeptSoAndNoSubnetsAreClaimed) {
  auto nodes = pair_of("same-subnet");
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.set_up_by, "NVIDIA's cluster script");
  EXPECT_THAT(found.cluster->fabric->subnets, IsEmpty());
  EXPECT_EQ(found.cluster->nodes[0].halves.size(), 2U);
}

TEST(Adopt, LinkLocalAddressesOfFirstHalvesAreAdoptedAndTheOthersLeftOut) {
  auto nodes = pair_of("link-local");
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.set_up_by, "NVIDIA's netplan file for link-local addresses");
  EXPECT_EQ(found.cluster->nodes[0].halves.size(), 1U);
  EXPECT_TRUE(is_link_local(found.cluster->nodes[0].halves[0].address));
}

TEST(Adopt, AnAddressThatSomebodyGaveComesBeforeASelfGivenOne) {
  auto nodes = pair_of("spark-pair");
  const Ipv4Prefix given = interface(nodes[0], "enp1s0f0np0").addresses.front();
  auto& addresses = interface(nodes[0], "enp1s0f0np0").addresses;
  addresses.insert(addresses.begin(), parse_ipv4_prefix("169.254.3.4/16").value());
  const Discovery found = adopt_pair(nodes);
  EXPECT_EQ(found.cluster->nodes[0].halves[0].address, given);
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
    EXPECT_NE(error.hint().find("--readdress"), std::string::npos);
  }
  EXPECT_NO_THROW(adopt_pair(nodes, {.addresses = AddressChoice::kPropose}));
}

TEST(Adopt, WithoutAddressesASubnetForEachHalfIsProposed) {
  auto nodes = pair_of("spark-pair");
  without_addresses(nodes);
  const Discovery found = adopt_pair(nodes);
  EXPECT_FALSE(found.adopted);
  EXPECT_EQ(found.set_up_by, "nobody yet");
  EXPECT_EQ(found.cluster->fabric->mtu, 9000);
  EXPECT_THAT(halves(*found.cluster, 1), ElementsAre("enp1s0f0np0 192.168.100.2/24", "enP2p1s0f0np0 192.168.101.2/24"));
}

TEST(Adopt, ProposedSubnetsKeepClearOfWhatNodesUse) {
  auto nodes = pair_of("spark-pair");
  without_addresses(nodes);
  nodes[1].report.machine.routes.push_back(
      {.destination = parse_ipv4_prefix("192.168.101.0/24").value(), .gateway = {}, .interface = "enP7s7"});
  EXPECT_THAT(halves(*adopt_pair(nodes).cluster, 0),
              ElementsAre("enp1s0f0np0 172.30.0.1/24", "enP2p1s0f0np0 172.30.1.1/24"));
}

TEST(Adopt, ARingIsPutInOrderAndEachCableHasItsTenNumbers) {
  std::vector<FoundNode> nodes = {captured("spark-ring", 1), captured("spark-ring", 2), captured("spark-ring", 3)};
  without_addresses(nodes);
  std::vector<Sighting> sightings;
  cable(sightings, nodes, 0, 0, 2, 1);  // spark-3 is next after spark-1
  cable(sightings, nodes, 2, 0, 1, 1);
  cable(sightings, nodes, 1, 0, 0, 1);
  const Discovery found = adopt_cluster(nodes, infer_topology(nodes.size(), sightings), {});
  ASSERT_TRUE(found.cluster);
  EXPECT_EQ(found.cluster->fabric->topology, Topology::kRing);
  EXPECT_EQ(found.cluster->nodes[1].name, "spark-3");
  EXPECT_EQ(nodes[1].access.name, "spark-3");
  EXPECT_THAT(halves(*found.cluster, 1), ElementsAre("enp1s0f0np0 192.168.110.2/24", "enP2p1s0f0np0 192.168.111.2/24",
                                                     "enp1s0f1np1 192.168.100.2/24", "enP2p1s0f1np1 192.168.101.2/24"));
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 6U);
}

TEST(Adopt, ASwitchThatJoinsAllHalvesStillGetsASubnetForEach) {
  auto nodes = pair_of("spark-pair");
  without_addresses(nodes);
  LinkMap map{.segments = {{{{0, 0, "A", "enp1s0f0np0"},
                             {0, 0, "B", "enP2p1s0f0np0"},
                             {1, 0, "A", "enp1s0f0np0"},
                             {1, 0, "B", "enP2p1s0f0np0"}}}},
              .topology = Topology::kSwitch,
              .order = {0, 1}};
  const Discovery found = adopt_cluster(nodes, map, {});
  EXPECT_EQ(found.cluster->fabric->subnets.size(), 2U);
  EXPECT_THAT(halves(*found.cluster, 1), ElementsAre("enp1s0f0np0 192.168.100.2/24", "enP2p1s0f0np0 192.168.101.2/24"));
}

TEST(Adopt, ACableWithOneHalfMissingIsWrittenWithoutSubnets) {
  auto nodes = pair_of("spark-pair");
  const LinkEnd a{0, 0, "A", "enp1s0f0np0"};
  const LinkEnd b{1, 0, "A", "enp1s0f0np0"};
  const Discovery found = adopt_cluster(nodes, infer_topology(nodes.size(), {{a, b}, {b, a}}), {});
  ASSERT_TRUE(found.cluster);
  EXPECT_THAT(found.cluster->fabric->subnets, IsEmpty());
  EXPECT_EQ(found.cluster->nodes[0].halves.size(), 1U);
}

TEST(Adopt, WhatAFileKnewStays) {
  auto nodes = pair_of("spark-pair");
  const Cluster known{.name = "desk",
                      .fabric = Fabric{.topology = Topology::kSwitch, .half_rate = BitsPerSecond{2e9}},
                      .compute = Compute{BytesPerSecond{1e9}},
                      .lab = "lab"};
  const Discovery found = adopt_pair(nodes, {.known = known});
  EXPECT_EQ(found.cluster->name, "desk");
  EXPECT_EQ(found.cluster->lab, "lab");
  EXPECT_EQ(found.cluster->fabric->half_rate, BitsPerSecond{2e9});
  EXPECT_EQ(found.cluster->fabric->topology, Topology::kSwitch);
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
}  // namespace yoke
