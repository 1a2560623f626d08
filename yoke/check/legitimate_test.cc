// What is legitimate is never told.
#include <gtest/gtest.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/check/facts_testing.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

TEST(Legitimate, ManagementAsTheWayToMeetAndNvidiasOwnListOfAllFourDevices) {
  spec::Survey facts = made_pair();
  for (const char* variable : {"NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include"}) {
    set_in_environment(facts, variable, "enP7s7");
  }
  set_in_environment(facts, "NCCL_IB_HCA", "rocep1s0f0,rocep1s0f1,roceP2p1s0f0,roceP2p1s0f1");
  set_in_environment(facts, "NCCL_IB_SUBNET_AWARE_ROUTING", "1");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ExcludingPinsExactPinsNetworksAndARightGidIndex) {
  spec::Survey facts = made_pair();
  set_in_environment(facts, "NCCL_SOCKET_IFNAME", "^docker0,lo");
  set_in_environment(facts, "NCCL_IB_HCA", "=rocep1s0f0:1,roceP2p1s0f0:1");
  set_in_environment(facts, "OMPI_MCA_btl_tcp_if_include", "192.168.1.0/24");
  set_in_environment(facts, "UCX_NET_DEVICES", "rocep1s0f0:1,roceP2p1s0f0:1");
  set_in_environment(facts, "NCCL_IB_GID_INDEX", "3");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ListsInWhichOnePortHasNoCableAndRdmaThatIsLeftOn) {
  spec::Survey facts = made_pair();
  set_in_environment(facts, "NCCL_SOCKET_IFNAME", "enp1s0f0np0,enp1s0f1np1");
  set_in_environment(facts, "UCX_NET_DEVICES", "rocep1s0f0:1,rocep1s0f1:1,roceP2p1s0f0:1");
  set_in_environment(facts, "NCCL_IB_HCA", "^rocep1s0f1,roceP2p1s0f1");
  set_in_environment(facts, "NCCL_IB_DISABLE", "0");
  set_in_environment(facts, "NCCL_NET", "IB");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, APortThatIsLeftOutWholeAsOneForStorage) {
  spec::Survey facts = made_pair();
  spec::Machine& machine = *facts.nodes[1].machine;
  for (const char* rail : {"enp1s0f1np1", "enP2p1s0f1np1"}) {
    spec::NetworkInterface& interface = interface_of(facts, 1, rail);
    interface.up = interface.carrier = true;
    interface.addresses = {made_address(rail[2] == 'P' ? 111 : 110, 2)};
    rdma_of(facts, 1, *interface.rdma_device) = made_rdma(interface);
    facts.cluster->nodes[1].rails.push_back({rail, interface.addresses[0]});
  }
  machine.settings = {{"NCCL_IB_HCA", "^rocep1s0f1,roceP2p1s0f1", "environment"}};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, RdmaSwitchedOffWhereThereIsNone) {
  spec::Survey facts = made_pair();
  set_in_environment(facts, "NCCL_IB_DISABLE", "1");
  for (spec::RdmaDevice& device : facts.nodes[1].machine->rdma_devices) device.state = "DOWN";
  for (const char* rail : {kRailA, kRailB}) interface_of(facts, 1, rail).rdma_device.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AnyPinOnOneMachineWithoutACable) {
  spec::Survey facts;
  facts.nodes = {{.name = "desk", .machine = made_spark(1)}};
  for (const char* rail : {kRailA, kRailB}) interface_of(facts, 0, rail).carrier = false;
  facts.nodes[0].machine->settings = {{"GLOO_SOCKET_IFNAME", "enp1s0f1np1", "environment"}};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Fixes, NameTheDevicesThatAreMeant) {
  const auto fix_of = [](const char* name, const char* value) {
    spec::Survey facts = made_pair();
    set_in_environment(facts, name, value);
    const std::vector<spec::Finding> findings = evaluate(facts);
    return findings.size() == 1 ? findings[0].fix : fmt::format("{} findings", findings.size());
  };
  EXPECT_EQ(fix_of("NCCL_SOCKET_IFNAME", "en"),
            "write exactly what is meant: NCCL_SOCKET_IFNAME==enP7s7 to meet over the management network, or "
            "NCCL_SOCKET_IFNAME==enp1s0f0np0,enP2p1s0f0np0 over the fast rails");
  EXPECT_EQ(fix_of("NCCL_IB_HCA", "^roceP2p1s0f0"), "NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0");
  EXPECT_EQ(fix_of("NCCL_SOCKET_IFNAME", "enp1s0f1np1"), "name what has a link: NCCL_SOCKET_IFNAME==enp1s0f0np0");
  EXPECT_EQ(fix_of("OMPI_MCA_btl_tcp_if_include", "enp1s0f1np1"),
            "name what has a link: OMPI_MCA_btl_tcp_if_include=enp1s0f0np0,enP2p1s0f0np0");
  EXPECT_EQ(fix_of("UCX_NET_DEVICES", "rocep1s0f1:1"), "name what has a link: UCX_NET_DEVICES=rocep1s0f0,roceP2p1s0f0");
}

TEST(Legitimate, ADriftedGidIndexThatNobodyPinned) {
  spec::Survey facts = made_pair();
  rdma_of(facts, 1, "roceP2p1s0f0").gids[3].index = 4;
  rdma_of(facts, 1, "roceP2p1s0f0").gid_index = 4;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AnIdleGpuOnASlowPcieLinkAtALowClock) {
  spec::Survey facts = made_pair();
  spec::Gpu& gpu = facts.nodes[1].machine->gpus[0];
  gpu.pcie = spec::PcieLink{2.5, 16, 32, 16};
  gpu.utilization_percent = 0;
  gpu.clock_mhz = 208;
  gpu.power_w = 4;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ABusyGpuThatIsLimitedByItsPowerNotStuck) {
  spec::Survey facts = made_pair();
  spec::Gpu& gpu = facts.nodes[1].machine->gpus[0];
  gpu.utilization_percent = 99;
  gpu.clock_mhz = 2400;
  gpu.power_w = 90;
  EXPECT_EQ(rules_of(facts), "");
}

// Of two flows on a busy machine one may not come to its turn at all: neither healthy nor a fault.
TEST(Legitimate, AnIdleRailByTcpOnABusyMachineIsNotEvaluated) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  for (spec::RailMeasurement& rail : facts.measurement->rails) {
    if (rail.from_interface == kRailB) rail.together = BitsPerSecond{1e9};
    rail.transport = "tcp";
  }
  EXPECT_NE(rules_of(facts).find("rail-idle"), std::string::npos);
  for (spec::RailMeasurement& rail : facts.measurement->rails) rail.taken = 0.9;
  EXPECT_EQ(rules_of(facts).find("rail-idle"), std::string::npos);
  const std::vector<spec::Finding> unevaluated = withheld(facts);
  EXPECT_TRUE(
      std::ranges::any_of(unevaluated, [](const spec::Finding& finding) { return finding.rule == "rail-idle"; }));
}

TEST(Legitimate, LoadedMemoryAndUnusedSwap) {
  spec::Survey facts = made_pair();
  facts.nodes[1].machine->memory.available = Bytes{12LL << 30};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ANameThatDoesNotResolveAndWifiBesideTheWire) {
  spec::Survey facts = made_pair();
  facts.nodes[0].names[0].addresses.clear();
  spec::NetworkInterface wifi{.name = "wlP9s9", .kind = spec::InterfaceKind::kWifi, .mac = "", .up = true};
  wifi.carrier = true;
  wifi.addresses = {*parse_ipv4_prefix("192.168.1.99/24")};
  facts.nodes[1].machine->interfaces.push_back(wifi);
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, DockersPolicyOnAPairAndARingThatForwards) {
  spec::Survey facts = made_pair();
  facts.nodes[1].forward_policy = "DROP";
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[0].machine->routes.push_back(
      {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kRailA});
  EXPECT_EQ(rules_of(facts), "docker-forward spark-2 iptables FORWARD");
  facts.nodes[1].forward_accepts = true;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ARingOfThreeWhoseRoutesEndAtTheNeighbour) {
  spec::Survey facts = made_pair();
  facts.nodes[1].machine->ip_forward = false;
  facts.nodes[1].forward_policy = "DROP";
  add_far_end(facts);
  facts.nodes[0].machine->routes.push_back({.destination = Ipv4Prefix{made_address(102, 2).address, 32},
                                            .gateway = made_address(100, 2).address,
                                            .interface = kRailA});
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AWiderNetworkBesideARailAndOneBridgeOnEveryMachine) {
  spec::Survey facts = made_pair();
  for (spec::SurveyedNode& node : facts.nodes) {
    spec::NetworkInterface bridge{.name = "docker0", .kind = spec::InterfaceKind::kBridge, .mac = "", .up = true};
    bridge.carrier = true;
    bridge.addresses = {*parse_ipv4_prefix("172.17.0.1/16")};
    node.machine->interfaces.push_back(bridge);
  }
  interface_of(facts, 1, "enP7s7").addresses.push_back(*parse_ipv4_prefix("192.168.0.9/16"));
  EXPECT_EQ(rules_of(facts), "");
}

void put_into_bond(spec::Survey& facts, std::size_t node, const char* rail) {
  spec::NetworkInterface bond{.name = "bond0", .kind = spec::InterfaceKind::kBond, .mac = "", .mtu = 9000, .up = true};
  bond.carrier = true;
  std::swap(bond.addresses, interface_of(facts, node, rail).addresses);
  interface_of(facts, node, rail).master = "bond0";
  spec::Machine& machine = *facts.nodes[node].machine;
  for (spec::Route& route : machine.routes) {
    if (route.interface == rail) route.interface = "bond0";
  }
  machine.interfaces.push_back(bond);
}

TEST(Legitimate, ARailThatHasItsAddressByABond) {
  spec::Survey facts = made_pair();
  put_into_bond(facts, 1, kRailB);
  EXPECT_EQ(rules_of(facts), "");
  facts.cluster.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Fixes, OfABondsMemberSpeakOfTheBond) {
  spec::Survey facts = made_pair();
  put_into_bond(facts, 1, kRailB);
  interface_of(facts, 1, kRailB).mtu = interface_of(facts, 1, "bond0").mtu = 1500;
  std::vector<spec::Finding> findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("'ip link set bond0 mtu 9000'"), std::string::npos) << findings[0].fix;
  facts = made_pair();
  put_into_bond(facts, 1, kRailB);
  interface_of(facts, 1, "bond0").addresses.clear();
  findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "rail-unaddressed");
  EXPECT_NE(findings[0].fix.find("give bond0 one"), std::string::npos) << findings[0].fix;
}

TEST(Legitimate, AnMtuOf1500ThatTheClusterFileAsksFor) {
  spec::Survey facts = made_pair();
  facts.cluster->fabric->mtu = 1500;
  for (const std::size_t node : {0U, 1U}) {
    for (const char* rail : {kRailA, kRailB}) interface_of(facts, node, rail).mtu = 1500;
  }
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, RailsThatCarryMoreThanExpectedAloneAndAsExpectedTogether) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  for (spec::RailMeasurement& rail : facts.measurement->rails) rail.alone = BitsPerSecond{300e9};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AnAllReduceOverTcpBesideALinkByRdma) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{3e9};
  facts.measurement->all_reduce->transport = "direct";
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, WhatTcpCarriesOnFastRailsWithoutPerftest) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->transports = {"tcp"};
  facts.measurement->all_reduce->transport = "direct";
  facts.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{2e9};
  const auto carry = [&](double alone) {
    for (spec::RailMeasurement& rail : facts.measurement->rails) {
      rail.transport = "tcp";
      rail.alone = BitsPerSecond{alone};
      rail.together = rail.both_ways = BitsPerSecond{alone / 2};
    }
  };
  carry(38e9);
  EXPECT_EQ(rules_of(facts), "");
  carry(12.9e9);  // the degraded state is below what TCP reaches
  EXPECT_EQ(rules_of(facts), "rail-degraded spark-1 enp1s0f0np0; rail-degraded spark-1 enP2p1s0f0np0");
  facts.measurement->expected = BitsPerSecond{2e9};  // a lab: TCP is what carries there
  carry(1.9e9);
  EXPECT_EQ(rules_of(facts), "rails-share spark-1 -; rails-share spark-2 -");
}

TEST(Legitimate, ARingWithoutRoutesBeyondTheNeighbours) {
  spec::Survey facts = ring_with_far_end();
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[0].far[0].routed = true;
  facts.nodes[0].far[0].routes = {"enP7s7"};  // a default route is none of the ring's
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, InALabTheLimitsOfThisMachineAreNotTheNodes) {
  spec::Survey facts = made_pair();
  facts.cluster->lab = "lab";
  spec::Machine& machine = *facts.nodes[1].machine;
  machine.containers.inside = "docker";
  machine.memlock_unlimited = false;
  machine.memlock = Bytes{64 << 10};
  machine.memory.swap_free = Bytes{0};
  machine.gpus[0].index.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, MakeshiftAddressesBesideProperOnes) {
  spec::Survey facts = made_pair();
  for (const std::size_t node : {0U, 1U}) {
    for (const char* name : {kRailA, kRailB, "enP7s7"}) {
      interface_of(facts, node, name).addresses.push_back(*parse_ipv4_prefix("169.254.7.9/16"));
    }
  }
  // Were they compared, two nodes would have one address, too.
  interface_of(facts, 1, kRailA).addresses.back() = *parse_ipv4_prefix("169.254.8.1/16");
  interface_of(facts, 1, kRailB).addresses.back() = *parse_ipv4_prefix("169.254.8.2/16");
  interface_of(facts, 1, "enP7s7").addresses.back() = *parse_ipv4_prefix("169.254.8.3/16");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Facts, SurviveJson) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.nodes[1].failure = spec::NodeFailure{spec::NodeFailureKind::kAsks, "asks", "copy the key"};
  facts.nodes[1].forward_policy = "DROP";
  facts.nodes[1].forward_drop = "chain f of table inet x: policy drop";
  facts.nodes[1].forward_exceptions = true;
  facts.nodes[1].paths[0].routed = false;
  facts.nodes[1].paths[1].routed = true;
  facts.nodes[1].paths[1].routes = {kRailA, kRailB};
  facts.nodes[1].ring_settings = {"net.ipv4.conf.a.rp_filter = 1"};
  facts.nodes[1].far = {{.peer = "spark-1", .address = made_address(102, 1).address, .reached = true, .routed = false}};
  facts.measurement->all_reduce_failure = "no";
  const Document document = parse_json(print_json(spec::to_json(facts)), "facts");
  EXPECT_EQ(from_json<spec::Survey>(document), facts);
}

TEST(Routes, TheLongestPrefixThenTheLowestMetricThenTheFirstDecides) {
  spec::Machine machine;
  machine.routes = {{.destination = {}, .gateway = {}, .interface = "wan"},
                    {.destination = made_address(100, 0), .gateway = {}, .interface = "slow", .metric = 200},
                    {.destination = made_address(100, 0), .gateway = {}, .interface = "fast", .metric = 100},
                    {.destination = Ipv4Prefix{made_address(100, 7).address, 32}, .gateway = {}, .interface = "one"},
                    {.destination = Ipv4Prefix{made_address(100, 7).address, 32}, .gateway = {}, .interface = "two"}};
  EXPECT_EQ(find_route(machine, made_address(100, 1).address)->interface, "fast");
  EXPECT_EQ(find_route(machine, made_address(100, 7).address)->interface, "one");
  EXPECT_EQ(find_route(machine, made_address(9, 9).address)->interface, "wan");
  machine.routes.clear();
  EXPECT_EQ(find_route(machine, made_address(9, 9).address), nullptr);
}

}  // namespace
}  // namespace yoke::check
