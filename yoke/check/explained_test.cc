// What one rule explains is not told again by another: every pair of the table's column `explains`, and cases where the
// condition of a rule leaves it out.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "yoke/base/text.h"
#include "yoke/check/rule_cases_testing.h"

namespace yoke {
namespace {

const Rule& rule_named(std::string_view name) {
  for (const Rule& rule : rule_table()) {
    if (rule.name == name) return rule;
  }
  throw std::out_of_range(std::string(name));
}

bool has(const std::vector<Finding>& findings, std::string_view rule) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.rule == rule; });
}

// Two faults at one place, which the cases of the two rules, joined, are not.
struct JoinedCase {
  const char* explaining;
  const char* explained;
  Break break_it;
};
// A way around a ring is broken, and what else is wrong.
Break in_ring(const std::function<void(Survey&)>& also) {
  return [also](Survey& facts) {
    facts = ring_with_far_end();
    facts.nodes[0].far[0].routed = true;
    facts.nodes[0].far[0].routes = {kHalfA};
    also(facts);
  };
}

Break third_fails(NodeFailureKind kind) {
  return in_ring([kind](Survey& f) {
    f.nodes.push_back({.name = "spark-3", .machine = {}, .failure = NodeFailure{kind, "no", "do"}});
  });
}

std::vector<JoinedCase> joined_ring_cases() {
  return {
      {"ssh-asks", "ring-path", third_fails(NodeFailureKind::kAsks)},
      {"node-unreachable", "ring-path", third_fails(NodeFailureKind::kUnreachable)},
      {"node-unread", "ring-path", third_fails(NodeFailureKind::kOther)},
      {"node-twice", "ring-path",
       in_ring([](Survey& f) { f.nodes.push_back({.name = "spark-3", .machine = f.nodes[0].machine}); })},
      {"nodes-swapped", "ring-path", in_ring([](Survey& f) {
         f.cluster->nodes.insert(f.cluster->nodes.end(), {made_place(3), made_place(4)});
         f.nodes.push_back({.name = "spark-3", .machine = made_spark(4)});
       })},
      {"interface-missing", "ring-path",
       in_ring([](Survey& f) { f.cluster->nodes[0].halves[1].interface = "enp9s0"; })},
      {"half-unaddressed", "ring-path", in_ring([](Survey& f) { interface_of(f, 0, kHalfB).addresses.clear(); })},
      {"subnet-differs", "ring-path",
       in_ring([](Survey& f) { interface_of(f, 0, kHalfB).addresses = {made_address(55, 1)}; })},
  };
}

void silence(Survey& facts, std::size_t path) {
  for (SurveyedNode& node : facts.nodes) {
    node.paths[path].small = node.paths[path].large = node.paths[path].connects = false;
  }
}

void send_elsewhere(Survey& facts, std::size_t path) {
  facts.nodes[1].paths[path].routed = true;
  facts.nodes[1].paths[path].routes = {"enP7s7"};
}

std::vector<JoinedCase> joined_cases() {
  std::vector<JoinedCase> cases = joined_ring_cases();
  const std::vector<JoinedCase> others = {
      {"half-silent", "half-unaddressed",
       [](Survey& f) {
         silence_half_b(f);
         for (const std::size_t node : {0U, 1U}) interface_of(f, node, kHalfB).addresses.clear();
       }},
      {"node-silent", "port-down", case_of("node-silent").break_it},
      {"address-twice", "address-differs",
       [](Survey& f) { interface_of(f, 1, kHalfB).addresses = {made_address(101, 1)}; }},
      {"prefix-differs", "subnet-differs", [](Survey& f) { interface_of(f, 0, kHalfA).addresses[0].length = 16; }},
      {"subnet-differs", "address-differs",
       [](Survey& f) { interface_of(f, 1, kHalfA).addresses = {made_address(55, 2)}; }},
      {"route-elsewhere", "half-silent",
       [](Survey& f) {
         send_elsewhere(f, 0);
         silence(f, 0);
       }},
      {"route-elsewhere", "half-dead",
       [](Survey& f) {
         send_elsewhere(f, 1);
         measure(f, [](HalfMeasurement& half) {
           half.alone = half.together = half.both_ways = {};
           half.failure = "timed out";
         });
       }},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

// Whether the survey has findings of both rules, of which judge() keeps the explaining one.
bool occurs_in(const Survey& facts, const Rule& explaining, const Rule& explained) {
  const std::vector<Finding> all = judge(facts, kNeedsAll, Explained::kKept);
  return has(all, explaining.name) && has(all, explained.name) && !has(judge(facts), explained.name);
}

bool occurs(const Rule& explaining, const Rule& explained) {
  for (const JoinedCase& joined : joined_cases()) {
    if (joined.explaining != explaining.name || joined.explained != explained.name) continue;
    Survey facts = made_pair();
    joined.break_it(facts);
    if (occurs_in(facts, explaining, explained)) return true;
  }
  for (const RuleCase& first : all_cases()) {
    for (const RuleCase& second : all_cases()) {
      const bool meant = (first.rule == explaining.name && second.rule == explained.name) ||
                         (second.rule == explaining.name && first.rule == explained.name);
      if (!meant) continue;
      Survey facts = made_pair();
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
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  for (HalfMeasurement& half : facts.measurement->halves) {
    if (half.from_interface == kHalfA) half.resent = 40;
    if (half.from_interface == kHalfB) half.alone = half.together = half.both_ways = BitsPerSecond{60e9};
  }
  EXPECT_EQ(rules_of(facts),
            "half-lossy spark-1 enp1s0f0np0; half-lossy spark-2 enp1s0f0np0; half-slow spark-1 enP2p1s0f0np0");
}

TEST(Explained, TwoDegradedMeasurementsAreDegradedHoweverTheyDiffer) {
  Survey facts = made_pair();
  measure(facts, [](HalfMeasurement& half) {
    half.alone = BitsPerSecond{9e9};
    half.alone_again = BitsPerSecond{14e9};
  });
  EXPECT_EQ(rules_of(facts), "half-degraded spark-1 enP2p1s0f0np0");
  measure(facts, [](HalfMeasurement& half) { half.alone_again = BitsPerSecond{60e9}; });
  EXPECT_EQ(rules_of(facts), "rail-unstable spark-1 enP2p1s0f0np0");
}

TEST(Explained, TwoMeasurementsThatAgreeAreJudgedByTheirMean) {
  Survey facts = made_pair();
  measure(facts, [](HalfMeasurement& half) {
    half.alone = BitsPerSecond{80e9};
    half.alone_again = BitsPerSecond{92e9};
  });
  EXPECT_EQ(rules_of(facts), "");
  measure(facts, [](HalfMeasurement& half) { half.alone_again = BitsPerSecond{86e9}; });
  EXPECT_EQ(rules_of(facts), "half-slow spark-1 enP2p1s0f0np0");
  EXPECT_NE(judge(facts).at(0).evidence.find("80 Gb/s, measured again 86 Gb/s"), std::string::npos)
      << judge(facts).at(0).evidence;
}

TEST(Explained, ThePartThatIsAskedForIsJudged) {
  Survey facts = made_pair();
  interface_of(facts, 1, kHalfB).mtu = 1500;
  facts.nodes[1].machine->kernel = "6.17.0-1004-nvidia";
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enP2p1s0f0np0; kernel-differs - -");
  EXPECT_EQ(judge(facts, kNeedsLinks).size(), 0U);
  EXPECT_EQ(judge(facts, kNeedsLinks | kNeedsAddresses).size(), 1U);
  EXPECT_EQ(judge(facts, kNeedsFacts).size(), 1U);
  EXPECT_LT(count_applied(facts, kNeedsLinks), count_applied(facts));
  EXPECT_LT(count_applied(facts), rule_table().size()) << "nothing was measured";
}

TEST(Explained, APinnedHalfThatIsDownIsToldAsThat) {
  Survey facts = made_pair();
  interface_of(facts, 1, kHalfA).up = interface_of(facts, 1, kHalfA).carrier = false;
  interface_of(facts, 0, kHalfA).carrier = false;
  set_in_environment(facts, "GLOO_SOCKET_IFNAME", kHalfA);
  set_in_environment(facts, "UCX_NET_DEVICES", "rocep1s0f0:1");
  EXPECT_EQ(rules_of(facts), "half-down spark-2 enp1s0f0np0");
}

TEST(Explained, ARingPathIsBrokenByTheHalfThatIsDown) {
  Survey facts = ring_with_far_end();
  facts.nodes[0].far[0].routed = true;
  facts.nodes[0].far[0].routes = {kHalfA};
  facts.nodes[0].machine->routes.push_back({.destination = Ipv4Prefix{made_address(102, 2).address, 32},
                                            .gateway = made_address(100, 2).address,
                                            .interface = kHalfA});
  EXPECT_EQ(rules_of(facts), "ring-path spark-2 -");
  facts.nodes[0].ring_settings = {"net.ipv4.conf.enp1s0f0np0.forwarding = 0"};  // nothing is passed on by it
  EXPECT_EQ(rules_of(facts), "ring-path spark-2 -");
  facts.nodes[0].ring_settings = {"net.ipv4.conf.enp1s0f0np0.rp_filter = 1"};
  EXPECT_EQ(rules_of(facts), "ring-path spark-1 ring");
  interface_of(facts, 1, kHalfB).up = interface_of(facts, 1, kHalfB).carrier = false;
  interface_of(facts, 0, kHalfB).carrier = false;
  EXPECT_EQ(rules_of(facts), "half-down spark-2 enP2p1s0f0np0");
}

TEST(Explained, AFailedAllReduceIsToldWhereNothingElseIs) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce_failure = "NCCL: unhandled system error";
  EXPECT_EQ(rules_of(facts), "collective-failed - -") << "by sockets it went well";
  facts.measurement->all_reduce.reset();
  EXPECT_EQ(rules_of(facts), "collective-failed - -");
  facts.nodes[1].machine->kernel = "6.17.0-1004-nvidia";  // no explanation
  EXPECT_EQ(rules_of(facts), "collective-failed - -; kernel-differs - -");
  interface_of(facts, 1, kHalfB).mtu = 1500;
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enP2p1s0f0np0; kernel-differs - -");
}

TEST(Explained, SilenceIsAFirewallsWhereOneEndDropsPackets) {
  Survey facts = made_pair();
  for (SurveyedNode& node : facts.nodes) {
    for (PathTrial& path : node.paths) path.small = path.large = path.connects = false;
  }
  EXPECT_EQ(rules_of(facts), "half-silent spark-1 enp1s0f0np0; half-silent spark-1 enP2p1s0f0np0");
  facts.nodes[0].drops_packets = false;
  facts.nodes[1].drops_packets = true;
  EXPECT_EQ(rules_of(facts), "firewall spark-2 enp1s0f0np0");
  facts.nodes[0].drops_packets = true;
  EXPECT_EQ(rules_of(facts), "half-silent spark-1 enp1s0f0np0; half-silent spark-1 enP2p1s0f0np0");
}

TEST(Explained, ANameIsWrongWhereItsFirstAddressIsAnothers) {
  Survey facts = made_pair();
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
  Survey facts = made_pair();
  interface_of(facts, 1, kHalfA).mac = interface_of(facts, 0, kHalfA).mac = "4c:bb:47:00:00:01";
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Explained, ARefusalWhileMeasuringIsAFirewallUnlessNobodyHasOne) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  for (HalfMeasurement& half : facts.measurement->halves) {
    if (half.from_interface != kHalfB) continue;
    half.alone = half.together = half.both_ways = {};
    half.failure = "cannot connect to 192.168.101.2:39031: Connection refused";
  }
  EXPECT_EQ(rules_of(facts), "firewall spark-2 enP2p1s0f0np0") << "by the address";
  facts.nodes[0].drops_packets = true;
  facts.nodes[1].drops_packets = false;
  EXPECT_EQ(rules_of(facts), "firewall spark-1 enP2p1s0f0np0") << "of what leaves";
  facts.nodes[0].drops_packets = false;
  EXPECT_EQ(rules_of(facts), "half-dead spark-1 enP2p1s0f0np0");
}

TEST(Explained, HalvesInOneNetworkAccountForTheRouteByTheOther) {
  Survey facts = made_pair();
  for (std::size_t node : {0U, 1U}) {
    const int host = 101 + static_cast<int>(node);
    interface_of(facts, node, kHalfB).addresses = {made_address(100, host)};
    rdma_of(facts, node, "roceP2p1s0f0") = made_rdma(interface_of(facts, node, kHalfB));
    facts.cluster->nodes[node].halves[1].address = made_address(100, host);
    facts.nodes[node].paths[1].peer_address = made_address(100, 203 - host).address;
    for (PathTrial& path : facts.nodes[node].paths) {
      path.routed = true;
      path.routes = {kHalfA};
    }
  }
  EXPECT_EQ(rules_of(facts), "subnet-shared spark-1 enP2p1s0f0np0; subnet-shared spark-2 enP2p1s0f0np0");
}

TEST(Explained, ADownHalfIsNotToldAgainByWhatItDoesNotCarry) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  interface_of(facts, 1, kHalfB).up = interface_of(facts, 1, kHalfB).carrier = false;
  interface_of(facts, 1, kHalfB).addresses.clear();
  interface_of(facts, 0, kHalfB).carrier = false;
  rdma_of(facts, 1, "roceP2p1s0f0").state = "DOWN";
  for (SurveyedNode& node : facts.nodes) node.paths[1].small = node.paths[1].large = node.paths[1].connects = false;
  for (HalfMeasurement& half : facts.measurement->halves) {
    if (half.from_interface != kHalfB) continue;
    half.alone = half.together = half.both_ways = {};
    half.failure = "no carrier";
  }
  facts.measurement->all_reduce.reset();
  facts.measurement->counters = {{"spark-1", kHalfB, "port_xmit_discards", 2}};
  EXPECT_EQ(rules_of(facts), "half-down spark-2 enP2p1s0f0np0");
}

TEST(Explained, ANarrowPcieLinkAccountsForHalfTheRateButNotForATenth) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  interface_of(facts, 1, kHalfB).pcie = PcieLink{32, 2, 32, 4};
  const auto carries = [&](double rate) {
    for (HalfMeasurement& half : facts.measurement->halves) {
      if (half.from_interface == kHalfB) half.alone = half.together = half.both_ways = BitsPerSecond{rate};
    }
  };
  carries(50e9);
  EXPECT_EQ(rules_of(facts), "pcie-narrow spark-2 enP2p1s0f0np0");
  carries(10e9);
  EXPECT_EQ(rules_of(facts), "half-degraded spark-1 enP2p1s0f0np0; pcie-narrow spark-2 enP2p1s0f0np0");
}

TEST(Explained, AHalfSwitchedOffAtEachEndIsTwoHalvesNotAPort) {
  Survey facts = made_pair();
  for (const auto& [node, half] : {std::pair{0U, kHalfA}, std::pair{1U, kHalfB}}) {
    interface_of(facts, node, half).up = interface_of(facts, node, half).carrier = false;
    interface_of(facts, 1 - node, half).carrier = false;
  }
  EXPECT_EQ(rules_of(facts), "half-down spark-1 enp1s0f0np0; half-down spark-2 enP2p1s0f0np0");
}

TEST(Explained, ANodeThatIsOffAccountsForItsHalfButNotForTheOneSwitchedOffHere) {
  Survey facts = made_pair();
  facts.nodes[1] = {.name = "spark-2", .machine = {}, .failure = NodeFailure{NodeFailureKind::kUnreachable, "no", ""}};
  for (const char* half : {kHalfA, kHalfB}) interface_of(facts, 0, half).carrier = false;
  interface_of(facts, 0, kHalfA).up = false;
  EXPECT_EQ(rules_of(facts), "node-unreachable spark-2 -; half-down spark-1 enp1s0f0np0");
}

TEST(Explained, HalvesWhoseAddressesWereSwappedAtBothEndsHaveOthersThanTheFile) {
  Survey facts = made_pair();
  for (const std::size_t node : {0U, 1U}) {
    std::swap(interface_of(facts, node, kHalfA).addresses, interface_of(facts, node, kHalfB).addresses);
    std::swap(rdma_of(facts, node, "rocep1s0f0").gids, rdma_of(facts, node, "roceP2p1s0f0").gids);
    for (Route& route : facts.nodes[node].machine->routes) {
      if (route.interface != "enP7s7") route.interface = route.interface == kHalfA ? kHalfB : kHalfA;
    }
  }
  EXPECT_EQ(rules_of(facts),
            "address-differs spark-1 enp1s0f0np0; address-differs spark-1 enP2p1s0f0np0; "
            "address-differs spark-2 enp1s0f0np0; address-differs spark-2 enP2p1s0f0np0");
}

TEST(Explained, TwoFaultsOnDifferentHalvesAreBothTold) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  facts.measurement->all_reduce.reset();
  interface_of(facts, 1, kHalfA).mtu = 1500;
  for (HalfMeasurement& half : facts.measurement->halves) {
    if (half.from_interface == kHalfB) half.alone = half.together = half.both_ways = BitsPerSecond{12.5e9};
  }
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enp1s0f0np0; half-degraded spark-1 enP2p1s0f0np0");
}

TEST(Explained, SwappedAddressesOfNodesAreToldAloneOfBoth) {
  Survey facts = made_pair();
  facts.measurement = made_measurement();
  std::swap(facts.nodes[0].machine, facts.nodes[1].machine);
  EXPECT_EQ(rules_of(facts), "nodes-swapped spark-1 -; nodes-swapped spark-2 -");
}

TEST(Explained, AWrongPrefixAccountsForNetworksThatOverlap) {
  Survey facts = made_pair();
  interface_of(facts, 0, kHalfA).addresses[0].length = 16;  // holds half B's and the management's network
  EXPECT_EQ(rules_of(facts), "prefix-differs spark-1 enp1s0f0np0");
}

}  // namespace
}  // namespace yoke
