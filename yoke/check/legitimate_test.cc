// What is legitimate is never told.
#include <gtest/gtest.h>

#include "yoke/base/json.h"
#include "yoke/check/facts_testing.h"
#include "yoke/check/rules.h"

namespace yoke {
namespace {

TEST(Legitimate, ManagementAsTheWayToMeetAndNvidiasOwnListOfAllFourDevices) {
  Survey facts = made_pair();
  for (const char* variable : {"NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include"}) {
    set_in_environment(facts, variable, "enP7s7");
  }
  set_in_environment(facts, "NCCL_IB_HCA", "rocep1s0f0,rocep1s0f1,roceP2p1s0f0,roceP2p1s0f1");
  set_in_environment(facts, "NCCL_IB_SUBNET_AWARE_ROUTING", "1");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ExcludingPinsExactPinsNetworksAndARightGidIndex) {
  Survey facts = made_pair();
  set_in_environment(facts, "NCCL_SOCKET_IFNAME", "^docker0,lo");
  set_in_environment(facts, "NCCL_IB_HCA", "=rocep1s0f0:1,roceP2p1s0f0:1");
  set_in_environment(facts, "OMPI_MCA_btl_tcp_if_include", "192.168.1.0/24");
  set_in_environment(facts, "UCX_NET_DEVICES", "rocep1s0f0:1,roceP2p1s0f0:1");
  set_in_environment(facts, "NCCL_IB_GID_INDEX", "3");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ListsInWhichOnePortHasNoCableAndRdmaThatIsLeftOn) {
  Survey facts = made_pair();
  set_in_environment(facts, "NCCL_SOCKET_IFNAME", "enp1s0f0np0,enp1s0f1np1");
  set_in_environment(facts, "UCX_NET_DEVICES", "rocep1s0f0:1,rocep1s0f1:1,roceP2p1s0f0:1");
  set_in_environment(facts, "NCCL_IB_HCA", "^rocep1s0f1,roceP2p1s0f1");
  set_in_environment(facts, "NCCL_IB_DISABLE", "0");
  set_in_environment(facts, "NCCL_NET", "IB");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, APortThatIsLeftOutWholeAsOneForStorage) {
  Survey facts = made_pair();
  Machine& machine = *facts.nodes[1].machine;
  for (const char* half : {"enp1s0f1np1", "enP2p1s0f1np1"}) {
    NetworkInterface& interface = interface_of(facts, 1, half);
    interface.up = interface.carrier = true;
    interface.addresses = {made_address(half[2] == 'P' ? 111 : 110, 2)};
    rdma_of(facts, 1, *interface.rdma_device) = made_rdma(interface);
    facts.cluster->nodes[1].halves.push_back({half, interface.addresses[0]});
  }
  machine.settings = {{"NCCL_IB_HCA", "^rocep1s0f1,roceP2p1s0f1", "environment"}};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, RdmaSwitchedOffWhereThereIsNone) {
  Survey facts = made_pair();
  set_in_environment(facts, "NCCL_IB_DISABLE", "1");
  for (RdmaDevice& device : facts.nodes[1].machine->rdma_devices) device.state = "DOWN";
  for (const char* half : {kHalfA, kHalfB}) interface_of(facts, 1, half).rdma_device.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AnyPinOnOneMachineWithoutACable) {
  Survey facts;
  facts.nodes = {{.name = "desk", .machine = made_spark(1)}};
  for (const char* half : {kHalfA, kHalfB}) interface_of(facts, 0, half).carrier = false;
  facts.nodes[0].machine->settings = {{"GLOO_SOCKET_IFNAME", "enp1s0f1np1", "environment"}};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Fixes, NameTheDevicesThatAreMeant) {
  const auto fix_of = [](const char* name, const char* value) {
    Survey facts = made_pair();
    set_in_environment(facts, name, value);
    const std::vector<Finding> findings = judge(facts);
    return findings.size() == 1 ? findings[0].fix : fmt::format("{} findings", findings.size());
  };
  EXPECT_EQ(fix_of("NCCL_SOCKET_IFNAME", "en"),
            "write exactly what is meant: NCCL_SOCKET_IFNAME==enP7s7 to meet over the management network, or "
            "NCCL_SOCKET_IFNAME==enp1s0f0np0,enP2p1s0f0np0 over the fast halves");
  EXPECT_EQ(fix_of("NCCL_IB_HCA", "^roceP2p1s0f0"), "NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0");
  EXPECT_EQ(fix_of("NCCL_SOCKET_IFNAME", "enp1s0f1np1"), "name what has a link: NCCL_SOCKET_IFNAME==enp1s0f0np0");
  EXPECT_EQ(fix_of("OMPI_MCA_btl_tcp_if_include", "enp1s0f1np1"),
            "name what has a link: OMPI_MCA_btl_tcp_if_include=enp1s0f0np0,enP2p1s0f0np0");
  EXPECT_EQ(fix_of("UCX_NET_DEVICES", "rocep1s0f1:1"), "name what has a link: UCX_NET_DEVICES=rocep1s0f0,roceP2p1s0f0");
}

TEST(Legitimate, ADriftedGidIndexThatNobodyPinned) {
  Survey facts = made_pair();
  rdma_of(facts, 1, "roceP2p1s0f0").gids[3].index = 4;
  rdma_of(facts, 1, "roceP2p1s0f0").gid_index = 4;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AnIdleGpuOnASlowPcieLinkAtALowClock) {
  Survey facts = made_pair();
  Gpu& gpu = facts.nodes[1].machine->gpus[0];
  gpu.pcie = PcieLink{2.5, 16, 32, 16};
  gpu.utilization_percent = 0;
  gpu.clock_mhz = 208;
  gpu.power_w = 4;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ABusyGpuThatIsLimitedByItsPowerNotStuck) {
  Survey facts = made_pair();
  Gpu& gpu = facts.nodes[1].machine->gpus[0];
  gpu.utilization_percent = 99;
  gpu.clock_mhz = 2400;
  gpu.power_w = 90;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, LoadedMemoryAndUnusedSwap) {
  Survey facts = made_pair();
  facts.nodes[1].machine->memory.available = Bytes{12LL << 30};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ANameThatDoesNotResolveAndWifiBesideTheWire) {
  Survey facts = made_pair();
  facts.nodes[0].names[0].addresses.clear();
  NetworkInterface wifi{.name = "wlP9s9", .kind = InterfaceKind::kWifi, .mac = "", .up = true};
  wifi.carrier = true;
  wifi.addresses = {*parse_ipv4_prefix("192.168.1.99/24")};
  facts.nodes[1].machine->interfaces.push_back(wifi);
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, DockersPolicyOnAPairAndARingThatForwards) {
  Survey facts = made_pair();
  facts.nodes[1].forward_policy = "DROP";
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[0].machine->routes.push_back(
      {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kHalfA});
  EXPECT_EQ(rules_of(facts), "docker-forward spark-2 iptables FORWARD");
  facts.nodes[1].forward_accepts = true;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, ARingOfThreeWhoseRoutesEndAtTheNeighbour) {
  Survey facts = made_pair();
  facts.nodes[1].machine->ip_forward = false;
  facts.nodes[1].forward_policy = "DROP";
  add_far_end(facts);
  facts.nodes[0].machine->routes.push_back({.destination = Ipv4Prefix{made_address(102, 2).address, 32},
                                            .gateway = made_address(100, 2).address,
                                            .interface = kHalfA});
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AWiderNetworkBesideAHalfAndOneBridgeOnEveryMachine) {
  Survey facts = made_pair();
  for (SurveyedNode& node : facts.nodes) {
    NetworkInterface bridge{.name = "docker0", .kind = InterfaceKind::kBridge, .mac = "", .up = true};
    bridge.carrier = true;
    bridge.addresses = {*parse_ipv4_prefix("172.17.0.1/16")};
    node.machine->interfaces.push_back(bridge);
  }
  interface_of(facts, 1, "enP7s7").addresses.push_back(*parse_ipv4_prefix("192.168.0.9/16"));
  EXPECT_EQ(rules_of(facts), "");
}

void put_into_bond(Survey& facts, std::size_t node, const char* half) {
  NetworkInterface bond{.name = "bond0", .kind = InterfaceKind::kBond, .mac = "", .mtu = 9000, .up = true};
  bond.carrier = true;
  std::swap(bond.addresses, interface_of(facts, node, half).addresses);
  interface_of(facts, node, half).master = "bond0";
  Machine& machine = *facts.nodes[node].machine;
  for (Route& route : machine.routes) {
    if (route.interface == half) route.interface = "bond0";
  }
  machine.interfaces.push_back(bond);
}

TEST(Legitimate, AHalfThatHasItsAddressByABond) {
  Survey facts = made_pair();
  put_into_bond(facts, 1, kHalfB);
  EXPECT_EQ(rules_of(facts), "");
  facts.cluster.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Fixes, OfABondsMemberSpeakOfTheBond) {
  Survey facts = made_pair();
  put_into_bond(facts, 1, kHalfB);
  interface_of(facts, 1, kHalfB).mtu = interface_of(facts, 1, "bond0").mtu = 1500;
  std::vector<Finding> findings = judge(facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("'ip link set bond0 mtu 9000'"), std::string::npos) << findings[0].fix;
  facts = made_pair();
  put_into_bond(facts, 1, kHalfB);
  interface_of(facts, 1, "bond0").addresses.clear();
  findings = judge(facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "half-unaddressed");
  EXPECT_NE(findings[0].fix.find("give bond0 one"), std::string::npos) << findings[0].fix;
}

TEST(Legitimate, AnMtuOf1500ThatTheClusterFileAsksFor) {
  Survey facts = made_pair();
  facts.cluster->fabric->mtu = 1500;
  for (const std::size_t node : {0U, 1U}) {
    for (const char* half : {kHalfA, kHalfB}) interface_of(facts, node, half).mtu = 1500;
  }
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, HalvesThatCarryMoreThanExpectedAloneAndAsExpectedTogether) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  for (HalfMeasurement& half : facts.measurement->halves) half.alone = BitsPerSecond{300e9};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, AnAllReduceOverTcpBesideALinkByRdma) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{3e9};
  facts.measurement->all_reduce->carrier = "direct";
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, WhatTcpCarriesOnFastHalvesWithoutPerftest) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->transports = {"tcp"};
  facts.measurement->all_reduce->carrier = "direct";
  facts.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{2e9};
  const auto carry = [&](double alone) {
    for (HalfMeasurement& half : facts.measurement->halves) {
      half.transport = "tcp";
      half.alone = BitsPerSecond{alone};
      half.together = half.both_ways = BitsPerSecond{alone / 2};
    }
  };
  carry(38e9);
  EXPECT_EQ(rules_of(facts), "");
  carry(12.9e9);  // the degraded state is below what TCP reaches
  EXPECT_EQ(rules_of(facts), "half-degraded spark-1 enp1s0f0np0; half-degraded spark-1 enP2p1s0f0np0");
  facts.measurement->expected = BitsPerSecond{2e9};  // a lab: TCP is what carries there
  carry(1.9e9);
  EXPECT_EQ(rules_of(facts), "halves-share spark-1 -; halves-share spark-2 -");
}

TEST(Legitimate, ARingWithoutRoutesBeyondTheNeighbours) {
  Survey facts = ring_with_far_end();
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[0].far[0].routed = true;
  facts.nodes[0].far[0].routes = {"enP7s7"};  // a default route is none of the ring's
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, InALabTheLimitsOfThisMachineAreNotTheNodes) {
  Survey facts = made_pair();
  facts.cluster->lab = "lab";
  Machine& machine = *facts.nodes[1].machine;
  machine.containers.inside = "docker";
  machine.memlock_unlimited = false;
  machine.memlock = Bytes{64 << 10};
  machine.memory.swap_free = Bytes{0};
  machine.gpus[0].index.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Legitimate, MakeshiftAddressesBesideProperOnes) {
  Survey facts = made_pair();
  for (const std::size_t node : {0U, 1U}) {
    for (const char* name : {kHalfA, kHalfB, "enP7s7"}) {
      interface_of(facts, node, name).addresses.push_back(*parse_ipv4_prefix("169.254.7.9/16"));
    }
  }
  // Were they compared, two nodes would have one address, too.
  interface_of(facts, 1, kHalfA).addresses.back() = *parse_ipv4_prefix("169.254.8.1/16");
  interface_of(facts, 1, kHalfB).addresses.back() = *parse_ipv4_prefix("169.254.8.2/16");
  interface_of(facts, 1, "enP7s7").addresses.back() = *parse_ipv4_prefix("169.254.8.3/16");
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Facts, SurviveJson) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.nodes[1].failure = NodeFailure{NodeFailureKind::kAsks, "asks", "copy the key"};
  facts.nodes[1].forward_policy = "DROP";
  facts.nodes[1].forward_drop = "chain f of table inet x: policy drop";
  facts.nodes[1].forward_exceptions = true;
  facts.nodes[1].paths[0].routed = false;
  facts.nodes[1].paths[1].routed = true;
  facts.nodes[1].paths[1].routes = {kHalfA, kHalfB};
  facts.nodes[1].ring_settings = {"net.ipv4.conf.a.rp_filter = 1"};
  facts.nodes[1].far = {{.peer = "spark-1", .address = made_address(102, 1).address, .reached = true, .routed = false}};
  facts.measurement->all_reduce_failure = "no";
  const Document document = parse_json(print_json(to_json(facts)), "facts");
  EXPECT_EQ(survey_from_json(document), facts);
}

TEST(Routes, TheLongestPrefixThenTheLowestMetricThenTheFirstDecides) {
  Machine machine;
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
}  // namespace yoke
