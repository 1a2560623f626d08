// A full mesh of four Sparks: what is healthy is clean, a link that is missing or swapped is named by its two nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "yoke/check/facts_testing.h"
#include "yoke/spec/mesh.h"

namespace yoke::check {
namespace {

using testing::HasSubstr;

constexpr std::array kHalves = {kRailA, kRailB, "enp1s0f1np1"};

const char* half_towards(int node, int peer) {
  for (int half = 0; half < spec::kMeshHalves; ++half) {
    if (spec::mesh_peer(node, half) == peer) return kHalves.at(static_cast<std::size_t>(half));
  }
  throw std::out_of_range("no such link");
}

int subnet_of(int a, int b) { return 100 + 4 * std::min(a, b) + std::max(a, b); }
std::string name_of(int node) { return fmt::format("spark-{}", node + 1); }

void give_links(spec::Survey& facts, int node) {
  spec::SurveyedNode& own = facts.nodes[static_cast<std::size_t>(node)];
  spec::ClusterNode& place = facts.cluster->nodes[static_cast<std::size_t>(node)];
  own.machine->routes.resize(2);
  own.machine->nccl[0].version = "2.30.7";
  for (int half = 0; half < spec::kMeshHalves; ++half) {
    const int peer = spec::mesh_peer(node, half);
    const int subnet = subnet_of(node, peer);
    spec::NetworkInterface& interface =
        interface_of(facts, static_cast<std::size_t>(node), kHalves.at(static_cast<std::size_t>(half)));
    interface.up = interface.carrier = true;
    interface.addresses = {made_address(subnet, node + 1)};
    spec::RdmaDevice& device = rdma_of(facts, static_cast<std::size_t>(node), *interface.rdma_device);
    device = made_rdma(interface);
    device.rate = BitsPerSecond{100e9};
    own.machine->routes.push_back({.destination = made_address(subnet, 0), .gateway = {}, .interface = interface.name});
    place.rails.push_back({interface.name, interface.addresses[0]});
    own.paths.push_back({.interface = interface.name,
                         .peer = name_of(peer),
                         .peer_address = made_address(subnet, peer + 1).address,
                         .large_size = 9000,
                         .small = true,
                         .large = true,
                         .connects = true});
    own.names.push_back({name_of(peer), {made_address(1, 21 + peer).address}});
  }
}

spec::Survey made_mesh() {
  spec::Survey facts;
  facts.cluster = spec::Cluster{.name = "desk", .nodes = {}, .hardware = "spark"};
  facts.cluster->fabric = spec::Fabric{.topology = spec::Topology::kMesh};
  for (int node = 0; node < spec::kMeshNodes; ++node) {
    facts.cluster->nodes.push_back(made_place(node + 1));
    facts.cluster->nodes.back().rails.clear();
    facts.nodes.push_back({.name = name_of(node), .machine = made_spark(node + 1)});
    facts.nodes.back().clock_ahead = Seconds{0.004};
  }
  for (int node = 0; node < spec::kMeshNodes; ++node) give_links(facts, node);
  return facts;
}

spec::LinkEnd end_at(int node, int half) {
  return {node, half / 2, half % 2 == 0 ? "A" : "B", kHalves.at(static_cast<std::size_t>(half))};
}

void hear(spec::Cabling& cabling, const spec::LinkEnd& a, const spec::LinkEnd& b) {
  cabling.segments.push_back({{std::min(a, b), std::max(a, b)}});
  cabling.adjacencies.insert(cabling.adjacencies.end(), {{a, b}, {b, a}});
}

// As 'yoke link discover' sees it: without a cluster file, by beacons.
spec::Survey discovered_mesh() {
  spec::Survey facts = made_mesh();
  facts.cluster.reset();
  facts.cabling = spec::Cabling{.topology = spec::Topology::kMesh};
  for (spec::SurveyedNode& node : facts.nodes) {
    node.paths.clear();
    node.names.clear();
  }
  for (int half = 0; half < spec::kMeshHalves; ++half) {
    for (int node = 0; node < spec::kMeshNodes; ++node) {
      const int peer = spec::mesh_peer(node, half);
      if (node < peer) hear(*facts.cabling, end_at(node, half), end_at(peer, half));
    }
  }
  return facts;
}

void lose_carrier(spec::Survey& facts, int node, int peer) {
  spec::NetworkInterface& interface = interface_of(facts, static_cast<std::size_t>(node), half_towards(node, peer));
  interface.carrier = false;
  rdma_of(facts, static_cast<std::size_t>(node), *interface.rdma_device).state = "DOWN";
}

void lose_answers(spec::Survey& facts, int node, int peer) {
  for (spec::PathProbe& path : facts.nodes[static_cast<std::size_t>(node)].paths) {
    if (path.peer == name_of(peer)) path.small = path.large = path.connects = false;
  }
}

spec::Measurement measured_mesh() {
  spec::Measurement measurement{
      .expected = BitsPerSecond{100e9}, .expected_source = "the catalogue", .transports = {"rdma"}};
  for (int from = 0; from < spec::kMeshNodes; ++from) {
    for (int to = 0; to < spec::kMeshNodes; ++to) {
      if (from == to) continue;
      measurement.rails.push_back({.from = name_of(from),
                                   .to = name_of(to),
                                   .from_interface = half_towards(from, to),
                                   .to_interface = half_towards(to, from),
                                   .alone = BitsPerSecond{96e9},
                                   .both_ways = BitsPerSecond{92e9},
                                   .failure = {}});
    }
  }
  return measurement;
}

TEST(Mesh, ThatIsHealthyIsClean) {
  spec::Survey facts = made_mesh();
  EXPECT_EQ(rules_of(facts), "") << "split ports of 100 Gb/s, halves without a cable, no way around";
  facts.measurement = measured_mesh();
  EXPECT_EQ(rules_of(facts), "");
  EXPECT_EQ(rules_of(discovered_mesh()), "");
}

TEST(Mesh, ALinkThatIsSlowIsHeldAgainstWhatOneHalfCarries) {
  spec::Survey facts = made_mesh();
  facts.measurement = measured_mesh();
  facts.measurement->rails[0].alone = BitsPerSecond{12e9};
  EXPECT_EQ(rules_of(facts), fmt::format("rail-degraded spark-1 {}", half_towards(0, 1)));
  rdma_of(facts, 1, "rocep1s0f0").rate = BitsPerSecond{50e9};
  facts.measurement->rails[0].alone = BitsPerSecond{48e9};
  EXPECT_EQ(rules_of(facts), "port-slow spark-2 enp1s0f0np0") << "as fast as the port has agreed on";
}

TEST(Mesh, ALinkThatIsMissingIsNamedByItsTwoNodes) {
  spec::Survey facts = made_mesh();
  lose_carrier(facts, 1, 3);
  lose_carrier(facts, 3, 1);
  const auto findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U) << rules_of(facts);
  EXPECT_EQ(findings[0].rule, "rail-down");
  EXPECT_THAT(findings[0].what, HasSubstr("the link between spark-2 and spark-4 is down"));
  EXPECT_THAT(findings[0].fix, HasSubstr("the cable between spark-2 and spark-4"));
}

TEST(Mesh, CablesThatAreSwappedAreNamedByTheirNode) {
  spec::Survey facts = made_mesh();
  for (const int peer : {0, 2}) {
    lose_answers(facts, 3, peer);
    lose_answers(facts, peer, 3);
  }
  const auto findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 2U) << rules_of(facts);
  for (const spec::Finding& finding : findings) {
    EXPECT_EQ(finding.rule, "rail-silent");
    EXPECT_THAT(finding.fix, HasSubstr("the cables in enp1s0f0np0 and enp1s0f1np1 of spark-4 may be swapped"));
  }
}

TEST(Mesh, OneSilentLinkSaysNothingOfSwappedCables) {
  spec::Survey facts = made_mesh();
  lose_answers(facts, 0, 1);
  lose_answers(facts, 1, 0);
  const auto findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U) << rules_of(facts);
  EXPECT_EQ(findings[0].fix.find("swapped"), std::string::npos);
}

TEST(Mesh, ThatLacksALinkIsDiscoveredAsSuch) {
  spec::Survey facts = discovered_mesh();
  spec::Cabling& cabling = *facts.cabling;
  std::erase_if(cabling.segments, [](const auto& segment) { return segment.joins(0) && segment.joins(2); });
  std::erase_if(cabling.adjacencies, [](const auto& one) { return one.by.node + one.from.node == 2; });
  cabling.topology.reset();
  lose_carrier(facts, 0, 2);
  lose_carrier(facts, 2, 0);
  const auto findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U) << rules_of(facts);
  EXPECT_EQ(findings[0].rule, "topology-unknown");
  EXPECT_THAT(findings[0].what, HasSubstr("the full mesh of four nodes has no link between spark-1 and spark-3"));
}

TEST(Mesh, DiscoverReportsCablesThatTheAddressesDoNotFit) {
  spec::Survey facts = discovered_mesh();
  spec::Cabling& cabling = *facts.cabling;
  const auto is_of = [](const spec::LinkEnd& end) { return end.node == 3 && end.port == 0; };
  std::erase_if(cabling.segments, [&](const auto& segment) { return is_of(segment.ends.back()); });
  std::erase_if(cabling.adjacencies, [&](const auto& one) { return is_of(one.by) || is_of(one.from); });
  hear(cabling, end_at(2, 0), end_at(3, 1));
  hear(cabling, end_at(1, 1), end_at(3, 0));
  const auto findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 2U) << rules_of(facts);
  for (const spec::Finding& finding : findings) {
    EXPECT_EQ(finding.rule, "subnet-differs");
    EXPECT_EQ(finding.node, "spark-4");
  }
}

TEST(Mesh, NobodyMustForwardWhatALostAddressWouldTake) {
  spec::Survey facts = made_mesh();
  for (spec::SurveyedNode& node : facts.nodes) node.machine->ip_forward = false;
  // spark-1 reaches spark-2's other addresses over the link between the two.
  for (const int beyond : {2, 3}) {
    const Ipv4Prefix far{made_address(subnet_of(1, beyond), 2).address, 32};
    facts.nodes[0].machine->routes.push_back(
        {.destination = far, .gateway = made_address(subnet_of(0, 1), 2).address, .interface = half_towards(0, 1)});
  }
  EXPECT_EQ(rules_of(facts), "");
  interface_of(facts, 1, half_towards(1, 3)).addresses.clear();
  EXPECT_EQ(rules_of(facts), fmt::format("rail-unaddressed spark-2 {}", half_towards(1, 3)));
}

TEST(Mesh, AnOldNcclAndRoutesThatLackAreReported) {
  spec::Survey facts = made_mesh();
  for (spec::SurveyedNode& node : facts.nodes) node.machine->nccl[0].version = "2.28.9";
  EXPECT_THAT(rules_of(facts), HasSubstr("nccl-no-ring spark-1"));
  facts = made_mesh();
  // One route over the link to spark-2 is there, another lacks.
  const Ipv4 far = made_address(subnet_of(1, 2), 2).address;
  facts.nodes[0].far = {
      {.peer = "spark-2", .address = far, .reached = true, .routed = true, .routes = {kRailA}},
      {.peer = "spark-2", .address = made_address(subnet_of(1, 3), 2).address, .reached = false, .routed = false}};
  const auto findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U) << rules_of(facts);
  EXPECT_EQ(findings[0].rule, "ring-path");
  EXPECT_THAT(findings[0].what, HasSubstr("over the mesh spark-2 from spark-1 is not reached"));
}

}  // namespace
}  // namespace yoke::check
