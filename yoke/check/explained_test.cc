// What one rule explains is not told again by another: every pair of the table's column `explains`, and cases where the
// condition of a rule leaves it out.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "yoke/base/text.h"
#include "yoke/check/rule_cases_testing.h"

namespace yoke::check {
namespace {

TEST(PlainLabs, HaveNoFindingsAboutTheOneMachineThatTheirNodesAre) {
  spec::Survey facts = made_pair();
  facts.cluster->lab = "lab";
  facts.nodes[1].machine = facts.nodes[0].machine;
  for (std::size_t i = 0; i < 2; ++i) {
    facts.nodes[i].paths.clear();
    facts.nodes[i].names.clear();
    facts.cluster->nodes[i].rails = {{"lo", *parse_ipv4_prefix(i == 0 ? "127.10.0.1/16" : "127.10.0.2/16")}};
  }
  EXPECT_EQ(rules_of(facts), "");
}

TEST(UnlistedRails, AMarkWithAReasonSilencesTheFinding) {
  spec::Survey facts = made_pair();
  for (spec::ClusterNode& node : facts.cluster->nodes) node.rails.pop_back();
  EXPECT_EQ(rules_of(facts), "rail-unlisted spark-1 enP2p1s0f0np0; rail-unlisted spark-2 enP2p1s0f0np0");
  for (spec::ClusterNode& node : facts.cluster->nodes)
    node.unused = {{kRailB, "a cable for one rail only, on purpose"}};
  EXPECT_EQ(rules_of(facts), "");
}

TEST(UnlistedRails, APinOfOneRailIsFoundWhateverTheFileLists) {
  spec::Survey facts = made_pair();
  for (spec::ClusterNode& node : facts.cluster->nodes) node.rails.pop_back();
  set_in_environment(facts, "NCCL_IB_HCA", "=rocep1s0f0:1");
  EXPECT_NE(rules_of(facts).find("pin-one-rail spark-2 NCCL_IB_HCA"), std::string::npos) << rules_of(facts);
}

TEST(UnlistedRails, ABondOverBothRailsCountsAsBoth) {
  spec::Survey facts = made_pair();
  facts.cluster->nodes[1].rails = {{"bond0", made_address(100, 2)}};
  spec::NetworkInterface bond{.name = "bond0", .kind = spec::InterfaceKind::kBond, .mac = "", .mtu = 9000, .up = true};
  bond.carrier = true;
  bond.addresses = {made_address(100, 2)};
  for (const char* rail : {kRailA, kRailB}) {
    interface_of(facts, 1, rail).master = "bond0";
    interface_of(facts, 1, rail).addresses.clear();
  }
  facts.nodes[1].machine->interfaces.push_back(bond);
  EXPECT_EQ(rules_of(facts).find("rail-unlisted"), std::string::npos) << rules_of(facts);
}

TEST(SlowCollectives, AreNotReportedBesideARouteThatExplainsThem) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->transports = {"tcp"};
  for (spec::RailMeasurement& rail : facts.measurement->rails) rail.transport = "tcp";
  facts.measurement->expected = BitsPerSecond{2e9};
  for (spec::RailMeasurement& rail : facts.measurement->rails)
    rail.alone = rail.together = rail.both_ways = BitsPerSecond{2e9};
  facts.measurement->all_reduce =
      spec::AllReduceMeasurement{2, "direct", Seconds{31e-6}, Bytes{16 << 20}, BytesPerSecond{0.1e9}};
  EXPECT_EQ(rules_of(facts), "collective-slow - -");
  EXPECT_EQ(evaluate(facts).at(0).fix.find("power"), std::string::npos);
  for (spec::PathProbe& path : facts.nodes[1].paths) {
    path.routed = true;
    path.routes = {"enP7s7"};
  }
  EXPECT_EQ(evaluate(facts).size(), 1U) << rules_of(facts);
  EXPECT_EQ(evaluate(facts).at(0).rule, "route-elsewhere");
}

const Rule& rule_named(std::string_view name) {
  for (const Rule& rule : rule_table()) {
    if (rule.name == name) return rule;
  }
  throw std::out_of_range(std::string(name));
}

bool has(const std::vector<spec::Finding>& findings, std::string_view rule) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const spec::Finding& finding) { return finding.rule == rule; });
}

// Two faults at one place, which the cases of the two rules, joined, are not.
struct JoinedCase {
  const char* explaining;
  const char* explained;
  Break break_it;
};
// A way around a ring is broken, and what else is wrong.
Break in_ring(const std::function<void(spec::Survey&)>& also) {
  return [also](spec::Survey& facts) {
    facts = ring_with_far_end();
    facts.nodes[0].far[0].routed = true;
    facts.nodes[0].far[0].routes = {kRailA};
    also(facts);
  };
}

Break third_fails(spec::NodeFailureKind kind) {
  return in_ring([kind](spec::Survey& f) {
    f.nodes.push_back({.name = "spark-3", .machine = {}, .failure = spec::NodeFailure{kind, "no", "do"}});
  });
}

std::vector<JoinedCase> joined_ring_cases() {
  return {
      {"ssh-asks", "ring-path", third_fails(spec::NodeFailureKind::kAsks)},
      {"node-unreachable", "ring-path", third_fails(spec::NodeFailureKind::kUnreachable)},
      {"node-unread", "ring-path", third_fails(spec::NodeFailureKind::kOther)},
      {"node-twice", "ring-path",
       in_ring([](spec::Survey& f) { f.nodes.push_back({.name = "spark-3", .machine = f.nodes[0].machine}); })},
      {"nodes-swapped", "ring-path", in_ring([](spec::Survey& f) {
         f.cluster->nodes.insert(f.cluster->nodes.end(), {made_place(3), made_place(4)});
         f.nodes.push_back({.name = "spark-3", .machine = made_spark(4)});
       })},
      {"interface-missing", "ring-path",
       in_ring([](spec::Survey& f) { f.cluster->nodes[0].rails[1].interface = "enp9s0"; })},
      {"rail-unaddressed", "ring-path", in_ring([](spec::Survey& f) { interface_of(f, 0, kRailB).addresses.clear(); })},
      {"subnet-differs", "ring-path",
       in_ring([](spec::Survey& f) { interface_of(f, 0, kRailB).addresses = {made_address(55, 1)}; })},
  };
}

void silence(spec::Survey& facts, std::size_t path) {
  for (spec::SurveyedNode& node : facts.nodes) {
    node.paths[path].small = node.paths[path].large = node.paths[path].connects = false;
  }
}

void send_elsewhere(spec::Survey& facts, std::size_t path) {
  facts.nodes[1].paths[path].routed = true;
  facts.nodes[1].paths[path].routes = {"enP7s7"};
}

void narrow_a_rail_that_pauses(spec::Survey& facts) {
  for (const std::size_t node : {0U, 1U}) {
    for (const char* rail : {kRailA, kRailB}) {
      spec::NetworkInterface& interface = interface_of(facts, node, rail);
      interface.pause_sent = node == 1 && rail == std::string(kRailB) ? 30'000'000 : 10;
      rdma_of(facts, node, *interface.rdma_device).counters = {{"port_rcv_packets", 4'000'000'000}};
    }
  }
  interface_of(facts, 1, kRailB).pcie = spec::PcieLink{32, 2, 32, 4};
}

std::vector<JoinedCase> joined_cases() {
  std::vector<JoinedCase> cases = joined_ring_cases();
  const std::vector<JoinedCase> others = {
      {"rail-silent", "rail-unaddressed",
       [](spec::Survey& f) {
         silence_rail_b(f);
         for (const std::size_t node : {0U, 1U}) interface_of(f, node, kRailB).addresses.clear();
       }},
      {"node-silent", "port-down", case_of("node-silent").break_it},
      {"pcie-narrow", "rail-pauses", narrow_a_rail_that_pauses},
      {"gpu-throttled", "gpu-stuck", case_of("gpu-throttled").break_it},
      {"gpu-clock-locked", "gpu-stuck", case_of("gpu-clock-locked").break_it},
      {"address-twice", "address-differs",
       [](spec::Survey& f) { interface_of(f, 1, kRailB).addresses = {made_address(101, 1)}; }},
      {"prefix-differs", "subnet-differs",
       [](spec::Survey& f) { interface_of(f, 0, kRailA).addresses[0].length = 16; }},
      {"subnet-differs", "address-differs",
       [](spec::Survey& f) { interface_of(f, 1, kRailA).addresses = {made_address(55, 2)}; }},
      {"route-elsewhere", "rail-silent",
       [](spec::Survey& f) {
         send_elsewhere(f, 0);
         silence(f, 0);
       }},
      {"route-elsewhere", "rail-dead",
       [](spec::Survey& f) {
         send_elsewhere(f, 1);
         measure(f, [](spec::RailMeasurement& rail) {
           rail.alone = rail.together = rail.both_ways = {};
           rail.failure = "timed out";
         });
       }},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

// Whether the survey has findings of both rules, of which evaluate() keeps the explaining one.
bool occurs_in(const spec::Survey& facts, const Rule& explaining, const Rule& explained) {
  const std::vector<spec::Finding> all = evaluate(facts, kNeedsAll, Explained::kKept);
  return has(all, explaining.name) && has(all, explained.name) && !has(evaluate(facts), explained.name);
}

bool occurs(const Rule& explaining, const Rule& explained) {
  for (const JoinedCase& joined : joined_cases()) {
    if (joined.explaining != explaining.name || joined.explained != explained.name) continue;
    spec::Survey facts = made_pair();
    joined.break_it(facts);
    if (occurs_in(facts, explaining, explained)) return true;
  }
  for (const RuleCase& first : all_cases()) {
    for (const RuleCase& second : all_cases()) {
      const bool meant = (first.rule == explaining.name && second.rule == explained.name) ||
                         (second.rule == explaining.name && first.rule == explained.name);
      if (!meant) continue;
      spec::Survey facts = made_pair();
      first.break_it(facts);
      second.break_it(facts);
      if (occurs_in(facts, explaining, explained)) return true;
    }
  }
  return false;
}

TEST(Explained, EachPairOfTheTableOccurs) {
  for (const Rule& explaining : rule_table()) {
    for (const Rule& explained : rule_table()) {
      if (explains(explaining, explained)) {
        EXPECT_TRUE(occurs(explaining, explained)) << explaining.name << " explains " << explained.name;
      }
    }
  }
}

TEST(Explained, TheTableNamesOnlyRulesThatItHas) {
  for (const Rule& rule : rule_table()) {
    std::set<std::string> names;
    for (const std::string& name : split(rule.explains, ' ')) {
      if (name.empty()) continue;
      EXPECT_NO_THROW(rule_named(name)) << rule.name;
      EXPECT_TRUE(names.insert(name).second) << rule.name << " names " << name << " twice";
    }
  }
}

TEST(Explained, NoRuleIsExplainedByWhatItExplains) {
  for (const Rule& start : rule_table()) {
    std::set<std::string_view> reached;
    std::vector<const Rule*> open = {&start};
    while (!open.empty()) {
      const Rule& rule = *open.back();
      open.pop_back();
      for (const Rule& next : rule_table()) {
        if (explains(rule, next) && reached.insert(next.name).second) open.push_back(&next);
      }
    }
    EXPECT_FALSE(reached.contains(start.name)) << start.name;
  }
}

TEST(Explained, WhatIsElsewhereIsNotDropped) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  for (spec::RailMeasurement& rail : facts.measurement->rails) {
    if (rail.from_interface == kRailA) rail.resent = 40;
    if (rail.from_interface == kRailB) rail.alone = rail.together = rail.both_ways = BitsPerSecond{60e9};
  }
  EXPECT_EQ(rules_of(facts),
            "rail-lossy spark-1 enp1s0f0np0; rail-lossy spark-2 enp1s0f0np0; rail-slow spark-1 enP2p1s0f0np0");
}

TEST(Explained, TwoDegradedMeasurementsAreDegradedHoweverTheyDiffer) {
  spec::Survey facts = made_pair();
  measure(facts, [](spec::RailMeasurement& rail) {
    rail.alone = BitsPerSecond{9e9};
    rail.alone_again = BitsPerSecond{14e9};
  });
  EXPECT_EQ(rules_of(facts), "rail-degraded spark-1 enP2p1s0f0np0");
  measure(facts, [](spec::RailMeasurement& rail) { rail.alone_again = BitsPerSecond{60e9}; });
  EXPECT_EQ(rules_of(facts), "rail-unstable spark-1 enP2p1s0f0np0");
}

TEST(Explained, TwoMeasurementsThatAgreeAreEvaluatedByTheirMean) {
  spec::Survey facts = made_pair();
  measure(facts, [](spec::RailMeasurement& rail) {
    rail.alone = BitsPerSecond{80e9};
    rail.alone_again = BitsPerSecond{92e9};
  });
  EXPECT_EQ(rules_of(facts), "");
  measure(facts, [](spec::RailMeasurement& rail) { rail.alone_again = BitsPerSecond{86e9}; });
  EXPECT_EQ(rules_of(facts), "rail-slow spark-1 enP2p1s0f0np0");
  EXPECT_NE(evaluate(facts).at(0).evidence.find("80 Gb/s, measured again 86 Gb/s"), std::string::npos)
      << evaluate(facts).at(0).evidence;
}

TEST(Explained, ThePartThatIsAskedForIsEvaluated) {
  spec::Survey facts = made_pair();
  interface_of(facts, 1, kRailB).mtu = 1500;
  facts.nodes[1].machine->kernel = "6.17.0-1004-nvidia";
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enP2p1s0f0np0; kernel-differs - -");
  EXPECT_EQ(evaluate(facts, kNeedsLinks).size(), 0U);
  EXPECT_EQ(evaluate(facts, kNeedsLinks | kNeedsAddresses).size(), 1U);
  EXPECT_EQ(evaluate(facts, kNeedsFacts).size(), 1U);
  EXPECT_LT(coverage_of(facts, kNeedsLinks).examined, coverage_of(facts).examined);
  EXPECT_LT(coverage_of(facts).examined, rule_table().size()) << "nothing was measured";
}

TEST(Explained, APinnedRailThatIsDownIsReportedAsThat) {
  spec::Survey facts = made_pair();
  interface_of(facts, 1, kRailA).up = interface_of(facts, 1, kRailA).carrier = false;
  interface_of(facts, 0, kRailA).carrier = false;
  set_in_environment(facts, "GLOO_SOCKET_IFNAME", kRailA);
  set_in_environment(facts, "UCX_NET_DEVICES", "rocep1s0f0:1");
  EXPECT_EQ(rules_of(facts), "rail-down spark-2 enp1s0f0np0");
}

TEST(Explained, ARingPathIsBrokenByTheRailThatIsDown) {
  spec::Survey facts = ring_with_far_end();
  facts.nodes[0].far[0].routed = true;
  facts.nodes[0].far[0].routes = {kRailA};
  facts.nodes[0].machine->routes.push_back({.destination = Ipv4Prefix{made_address(102, 2).address, 32},
                                            .gateway = made_address(100, 2).address,
                                            .interface = kRailA});
  EXPECT_EQ(rules_of(facts), "ring-path spark-2 -");
  facts.nodes[0].ring_settings = {"net.ipv4.conf.enp1s0f0np0.forwarding = 0"};  // nothing is passed on by it
  EXPECT_EQ(rules_of(facts), "ring-path spark-2 -");
  facts.nodes[0].ring_settings = {"net.ipv4.conf.enp1s0f0np0.rp_filter = 1"};
  EXPECT_EQ(rules_of(facts), "ring-path spark-1 ring");
  interface_of(facts, 1, kRailB).up = interface_of(facts, 1, kRailB).carrier = false;
  interface_of(facts, 0, kRailB).carrier = false;
  EXPECT_EQ(rules_of(facts), "rail-down spark-2 enP2p1s0f0np0");
}

TEST(Explained, AFailedAllReduceIsReportedWhereNothingElseIs) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce_failure = "NCCL: unhandled system error";
  EXPECT_EQ(rules_of(facts), "collective-failed - -") << "by sockets it went well";
  facts.measurement->all_reduce.reset();
  EXPECT_EQ(rules_of(facts), "collective-failed - -");
  facts.nodes[1].machine->kernel = "6.17.0-1004-nvidia";  // no explanation
  EXPECT_EQ(rules_of(facts), "collective-failed - -; kernel-differs - -");
  interface_of(facts, 1, kRailB).mtu = 1500;
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enP2p1s0f0np0; kernel-differs - -");
}

TEST(Explained, SilenceIsAFirewallsWhereOneEndDropsPackets) {
  spec::Survey facts = made_pair();
  for (spec::SurveyedNode& node : facts.nodes) {
    for (spec::PathProbe& path : node.paths) path.small = path.large = path.connects = false;
  }
  EXPECT_EQ(rules_of(facts), "rail-silent spark-1 enp1s0f0np0; rail-silent spark-1 enP2p1s0f0np0");
  facts.nodes[0].drops_packets = false;
  facts.nodes[1].drops_packets = true;
  EXPECT_EQ(rules_of(facts), "firewall spark-2 enp1s0f0np0");
  facts.nodes[0].drops_packets = true;
  EXPECT_EQ(rules_of(facts), "rail-silent spark-1 enp1s0f0np0; rail-silent spark-1 enP2p1s0f0np0");
}

TEST(Explained, ANameIsWrongWhereItsFirstAddressIsAnothers) {
  spec::Survey facts = made_pair();
  const Ipv4 first = interface_of(facts, 0, "enP7s7").addresses.at(0).address;
  const Ipv4 second = interface_of(facts, 1, "enP7s7").addresses.at(0).address;
  facts.nodes[1].names = {{"spark-2", {first}}};
  EXPECT_EQ(rules_of(facts), "name-wrong spark-2 spark-2");
  facts.nodes[1].names = {{"spark-2", {*parse_ipv4("127.0.1.1"), second}}, {"spark-1", {first, second}}};
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[1].names = {{"spark-1", {second, first}}};
  EXPECT_EQ(rules_of(facts), "name-wrong spark-2 spark-1");
}

TEST(Explained, OnePortWithAnothersHardwareAddressMakesNoOtherMachine) {
  spec::Survey facts = made_pair();
  interface_of(facts, 1, kRailA).mac = interface_of(facts, 0, kRailA).mac = "4c:bb:47:00:00:01";
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Explained, ARefusalWhileMeasuringIsAFirewallUnlessNobodyHasOne) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  for (spec::RailMeasurement& rail : facts.measurement->rails) {
    if (rail.from_interface != kRailB) continue;
    rail.alone = rail.together = rail.both_ways = {};
    rail.failure = "cannot connect to 192.168.101.2:39031: Connection refused";
  }
  EXPECT_EQ(rules_of(facts), "firewall spark-2 enP2p1s0f0np0") << "by the address";
  facts.nodes[0].drops_packets = true;
  facts.nodes[1].drops_packets = false;
  EXPECT_EQ(rules_of(facts), "firewall spark-1 enP2p1s0f0np0") << "of what leaves";
  facts.nodes[0].drops_packets = false;
  EXPECT_EQ(rules_of(facts), "rail-dead spark-1 enP2p1s0f0np0");
}

TEST(Explained, RailsInOneNetworkAccountForTheRouteByTheOther) {
  spec::Survey facts = made_pair();
  for (std::size_t node : {0U, 1U}) {
    const int host = 101 + static_cast<int>(node);
    interface_of(facts, node, kRailB).addresses = {made_address(100, host)};
    rdma_of(facts, node, "roceP2p1s0f0") = made_rdma(interface_of(facts, node, kRailB));
    facts.cluster->nodes[node].rails[1].address = made_address(100, host);
    facts.nodes[node].paths[1].peer_address = made_address(100, 203 - host).address;
    for (spec::PathProbe& path : facts.nodes[node].paths) {
      path.routed = true;
      path.routes = {kRailA};
    }
  }
  EXPECT_EQ(rules_of(facts), "subnet-shared spark-1 enP2p1s0f0np0; subnet-shared spark-2 enP2p1s0f0np0");
}

TEST(Explained, ADownRailIsNotReportedAgainByWhatItDoesNotCarry) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  interface_of(facts, 1, kRailB).up = interface_of(facts, 1, kRailB).carrier = false;
  interface_of(facts, 1, kRailB).addresses.clear();
  interface_of(facts, 0, kRailB).carrier = false;
  rdma_of(facts, 1, "roceP2p1s0f0").state = "DOWN";
  for (spec::SurveyedNode& node : facts.nodes)
    node.paths[1].small = node.paths[1].large = node.paths[1].connects = false;
  for (spec::RailMeasurement& rail : facts.measurement->rails) {
    if (rail.from_interface != kRailB) continue;
    rail.alone = rail.together = rail.both_ways = {};
    rail.failure = "no carrier";
  }
  facts.measurement->all_reduce.reset();
  facts.measurement->counters = {{"spark-1", kRailB, "port_xmit_discards", 2}};
  EXPECT_EQ(rules_of(facts), "rail-down spark-2 enP2p1s0f0np0");
}

TEST(Explained, ANarrowPcieLinkAccountsForHalfTheRateButNotForATenth) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  interface_of(facts, 1, kRailB).pcie = spec::PcieLink{32, 2, 32, 4};
  const auto carries = [&](double rate) {
    for (spec::RailMeasurement& rail : facts.measurement->rails) {
      if (rail.from_interface == kRailB) rail.alone = rail.together = rail.both_ways = BitsPerSecond{rate};
    }
  };
  carries(50e9);
  EXPECT_EQ(rules_of(facts), "pcie-narrow spark-2 enP2p1s0f0np0");
  carries(10e9);
  EXPECT_EQ(rules_of(facts), "rail-degraded spark-1 enP2p1s0f0np0; pcie-narrow spark-2 enP2p1s0f0np0");
}

TEST(Explained, ARailSwitchedOffAtEachEndIsTwoRailsNotAPort) {
  spec::Survey facts = made_pair();
  for (const auto& [node, rail] : {std::pair{0U, kRailA}, std::pair{1U, kRailB}}) {
    interface_of(facts, node, rail).up = interface_of(facts, node, rail).carrier = false;
    interface_of(facts, 1 - node, rail).carrier = false;
  }
  EXPECT_EQ(rules_of(facts), "rail-down spark-1 enp1s0f0np0; rail-down spark-2 enP2p1s0f0np0");
}

TEST(Explained, ANodeThatIsOffAccountsForItsRailButNotForTheOneSwitchedOffHere) {
  spec::Survey facts = made_pair();
  facts.nodes[1] = {
      .name = "spark-2", .machine = {}, .failure = spec::NodeFailure{spec::NodeFailureKind::kUnreachable, "no", ""}};
  for (const char* rail : {kRailA, kRailB}) interface_of(facts, 0, rail).carrier = false;
  interface_of(facts, 0, kRailA).up = false;
  EXPECT_EQ(rules_of(facts), "node-unreachable spark-2 -; rail-down spark-1 enp1s0f0np0");
}

TEST(Explained, RailsWhoseAddressesWereSwappedAtBothEndsHaveOthersThanTheFile) {
  spec::Survey facts = made_pair();
  for (const std::size_t node : {0U, 1U}) {
    std::swap(interface_of(facts, node, kRailA).addresses, interface_of(facts, node, kRailB).addresses);
    std::swap(rdma_of(facts, node, "rocep1s0f0").gids, rdma_of(facts, node, "roceP2p1s0f0").gids);
    for (spec::Route& route : facts.nodes[node].machine->routes) {
      if (route.interface != "enP7s7") route.interface = route.interface == kRailA ? kRailB : kRailA;
    }
  }
  EXPECT_EQ(rules_of(facts),
            "address-differs spark-1 enp1s0f0np0; address-differs spark-1 enP2p1s0f0np0; "
            "address-differs spark-2 enp1s0f0np0; address-differs spark-2 enP2p1s0f0np0");
}

TEST(Explained, TwoFaultsOnDifferentRailsAreBothReported) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  interface_of(facts, 1, kRailA).mtu = 1500;
  for (spec::RailMeasurement& rail : facts.measurement->rails) {
    if (rail.from_interface == kRailB) rail.alone = rail.together = rail.both_ways = BitsPerSecond{12.5e9};
  }
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enp1s0f0np0; rail-degraded spark-1 enP2p1s0f0np0");
}

TEST(Explained, SwappedAddressesOfNodesAreReportedAloneOfBoth) {
  spec::Survey facts = made_pair();
  facts.measurement = made_measurement();
  std::swap(facts.nodes[0].machine, facts.nodes[1].machine);
  EXPECT_EQ(rules_of(facts), "nodes-swapped spark-1 -; nodes-swapped spark-2 -");
}

TEST(Explained, AWrongPrefixAccountsForNetworksThatOverlap) {
  spec::Survey facts = made_pair();
  interface_of(facts, 0, kRailA).addresses[0].length = 16;  // holds rail B's and the management's network
  EXPECT_EQ(rules_of(facts), "prefix-differs spark-1 enp1s0f0np0");
}

}  // namespace
}  // namespace yoke::check
