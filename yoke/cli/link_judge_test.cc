#include "yoke/cli/link_judge.h"

#include <gtest/gtest.h>

#include "yoke/link/cluster_testing.h"
#include "yoke/link/expectation.h"

namespace yoke {
namespace {

using namespace literals;

LinkInterface healthy(const std::string& name, int node) {
  const int subnet = name == "enp1s0f0np0" ? 100 : 101;
  return {
      .name = name, .mtu = 9000, .up = true, .carrier = true, .ipv4 = {fmt::format("192.168.{}.{}/24", subnet, node)}};
}

// A pair of Sparks on which all is well: 95 Gb/s a half, 190 together.
LinkTestResult healthy_result() {
  LinkTestResult result{.cluster = "desk", .expected = LinkExpectation{100_Gbps, "the catalogue"}};
  PairResult pair{.a = "spark-1", .b = "spark-2", .transport = "rdma"};
  LinkPhase both{.kind = LinkPhaseKind::kBothWays};
  for (const std::string half : {"A", "B"}) {
    const std::string interface = half == "A" ? "enp1s0f0np0" : "enP2p1s0f0np0";
    pair.halves.push_back({half,
                           {.interface = healthy(interface, 1), .route = interface},
                           {.interface = healthy(interface, 2), .route = interface}});
    for (const bool forward : {true, false}) {
      const HalfRate rate{half, forward ? "spark-1" : "spark-2", forward ? "spark-2" : "spark-1", 95_Gbps};
      pair.phases.push_back({LinkPhaseKind::kAlone, {rate}, {}});
      both.rates.push_back(rate);
    }
  }
  for (const std::string from : {"spark-1", "spark-2"}) {
    LinkPhase together{.kind = LinkPhaseKind::kTogether};
    for (const HalfRate& rate : both.rates) {
      if (rate.from == from) together.rates.push_back(rate);
    }
    pair.phases.push_back(together);
  }
  pair.phases.push_back(both);
  result.pairs = {pair};
  result.all_reduce = AllReduceResult{
      .ranks = 2, .carrier = "nccl", .small_time = {31.7e-6}, .large_size = 16_MiB, .large_bus_bandwidth = 22_GBps};
  return result;
}

std::vector<Finding> judge_pair(LinkTestResult result) {
  const Cluster cluster = test_pair();
  judge_link_test(result, cluster, pairs_of(cluster, {}));
  return result.findings;
}

std::vector<std::string> rules_of(const LinkTestResult& result) {
  std::vector<std::string> rules;
  for (const Finding& finding : judge_pair(result)) rules.push_back(finding.rule);
  return rules;
}
using Rules = std::vector<std::string>;

void set_alone(LinkTestResult& result, const std::string& half, BitsPerSecond rate) {
  for (LinkPhase& phase : result.pairs[0].phases) {
    if (phase.kind == LinkPhaseKind::kAlone && phase.rates[0].half == half) phase.rates[0].rate = rate;
  }
}

TEST(LinkJudge, AHealthyLinkHasNoFinding) { EXPECT_EQ(rules_of(healthy_result()), Rules{}); }

TEST(LinkJudge, WithoutAnExpectationNoRateIsTooLow) {
  LinkTestResult result = healthy_result();
  result.expected.reset();
  set_alone(result, "B", 500_Gbps);  // far more than together: a processor that both share
  result.all_reduce->large_bus_bandwidth = 1_GBps;
  EXPECT_EQ(rules_of(result), Rules{});
}

TEST(LinkJudge, TheThirteenGigabitStateIsNamedWithBothCures) {
  LinkTestResult result = healthy_result();
  set_alone(result, "B", 13_Gbps);
  const auto findings = judge_pair(result);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "half-degraded");
  EXPECT_EQ(findings[0].severity, Severity::kFault);
  EXPECT_NE(findings[0].what.find("half B"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("reboot"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("power"), std::string::npos);
}

TEST(LinkJudge, SlowerThanExpectedIsAWarning) {
  LinkTestResult result = healthy_result();
  set_alone(result, "A", 40_Gbps);
  EXPECT_EQ(judge_pair(result).at(0).rule, "half-slow");
  EXPECT_EQ(judge_pair(result).at(0).severity, Severity::kWarning);
  set_alone(result, "A", 85_Gbps);
  EXPECT_EQ(rules_of(result), Rules{});
}

TEST(LinkJudge, HalvesThatShareAPathAreFoundByMeasuringThemTogether) {
  LinkTestResult result = healthy_result();
  for (LinkPhase& phase : result.pairs[0].phases) {
    if (phase.kind != LinkPhaseKind::kTogether) continue;
    for (HalfRate& rate : phase.rates) rate.rate = 50_Gbps;
  }
  EXPECT_EQ(rules_of(result), (Rules{"halves-share", "halves-share"})) << "once for each direction";
}

TEST(LinkJudge, AHalfThatCarriesNothingIsToldByTheEndThatIsDown) {
  LinkTestResult result = healthy_result();
  PairResult& pair = result.pairs[0];
  pair.failures = {{"B", "no answer"}};
  pair.phases.clear();
  pair.halves[1].a.interface->carrier = false;
  pair.halves[1].b.interface->up = pair.halves[1].b.interface->carrier = false;
  const auto findings = judge_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"half-down"});
  EXPECT_EQ(findings[0].node, "spark-2") << "the lost carrier at the other end is only its shadow";
  EXPECT_EQ(findings[0].subject, "enP2p1s0f0np0");
  EXPECT_NE(findings[0].what.find("half B (enP2p1s0f0np0) on spark-2"), std::string::npos) << findings[0].what;
  pair.halves[1].a.interface = healthy("enP2p1s0f0np0", 1);
  pair.halves[1].b.interface = healthy("enP2p1s0f0np0", 2);
  ASSERT_EQ(rules_of(result), Rules{"half-dead"});
  EXPECT_NE(judge_pair(result)[0].fix.find("--transport tcp"), std::string::npos);
  pair.transport = "tcp";
  EXPECT_NE(judge_pair(result)[0].fix.find("firewall"), std::string::npos);
  pair.halves[1].b.interface->ipv4.clear();
  EXPECT_EQ(rules_of(result), Rules{"half-unaddressed"});
  pair.halves[1].b.interface.reset();
  EXPECT_EQ(rules_of(result), Rules{"interface-missing"});
}

TEST(LinkJudge, MtuRouteAndCountersAreJudged) {
  LinkTestResult result = healthy_result();
  result.pairs[0].halves[0].b.interface->mtu = 1500;
  EXPECT_EQ(rules_of(result), Rules{"mtu-differs"});
  EXPECT_EQ(judge_pair(result).at(0).node, "spark-2");
  result.pairs[0].halves[0].a.interface->mtu = 1500;
  EXPECT_EQ(rules_of(result), (Rules{"mtu-small", "mtu-small"})) << "once for each node";
  result = healthy_result();
  result.pairs[0].halves[0].a.route = "enP7s7";
  EXPECT_EQ(rules_of(result), Rules{"route-elsewhere"});
  result = healthy_result();
  result.pairs[0].counters = {{"spark-1", "A", "enp1s0f0np0", "rx_dropped", 5}};
  EXPECT_EQ(rules_of(result), Rules{}) << "drops are told, but no damage";
  result.pairs[0].counters.push_back({"spark-1", "A", "enp1s0f0np0", "symbol_error", 1});
  EXPECT_EQ(rules_of(result), Rules{"errors-counted"});
}

TEST(LinkJudge, ASlowCollectiveOverHealthyHalvesIsToldApart) {
  LinkTestResult result = healthy_result();
  result.all_reduce->large_bus_bandwidth = 3_GBps;
  EXPECT_EQ(rules_of(result), Rules{"collective-slow"});
  result.all_reduce->carrier = "direct";
  EXPECT_EQ(rules_of(result), Rules{}) << "sockets are not compared with RDMA";
  result.all_reduce.reset();
  result.all_reduce_missing = "--no-all-reduce was given";
  EXPECT_EQ(rules_of(result), Rules{});
  result.all_reduce_failure = "rank 1 is lost";
  EXPECT_EQ(rules_of(result), Rules{"collective-failed"});
}

TEST(LinkJudge, AnNcclThatFailsIsToldThoughSocketsTookItsPlace) {
  LinkTestResult result = healthy_result();
  result.all_reduce->carrier = "direct";
  result.all_reduce_failure = "NCCL: unhandled system error";
  const auto findings = judge_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"collective-failed"});
  EXPECT_NE(findings[0].what.find("by NCCL"), std::string::npos) << findings[0].what;
  EXPECT_NE(findings[0].evidence.find("system error"), std::string::npos);
}

TEST(LinkJudge, RatesByTcpOnFastHalvesAreAFloorOfWhichOnlyTheLowestTell) {
  LinkTestResult result = healthy_result();
  result.pairs[0].transport = "tcp";
  result.all_reduce->carrier = "direct";
  result.all_reduce->large_bus_bandwidth = 3_GBps;
  for (LinkPhase& phase : result.pairs[0].phases) {
    for (HalfRate& rate : phase.rates) rate.rate = phase.kind == LinkPhaseKind::kAlone ? 40_Gbps : 20_Gbps;
  }
  EXPECT_EQ(rules_of(result), Rules{}) << "as a healthy pair without perftest";
  set_alone(result, "B", 12.9_Gbps);
  EXPECT_EQ(rules_of(result), Rules{"half-degraded"});
}

TEST(LinkJudge, TwoMeasurementsThatDifferAreToldAsThatAndNeverHealthy) {
  LinkTestResult result = healthy_result();
  set_alone(result, "B", 40_Gbps);
  for (LinkPhase& phase : result.pairs[0].phases) {
    if (phase.kind == LinkPhaseKind::kAlone && phase.rates[0].half == "B") phase.rates[0].again = 95_Gbps;
  }
  const auto findings = judge_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"rail-unstable"});
  EXPECT_NE(findings[0].what.find("carries 40 Gb/s and, measured again, 95 Gb/s"), std::string::npos)
      << findings[0].what;
}

TEST(LinkJudge, WhatABusyMachineCarriesByTcpIsNotJudgedAndThatIsSaid) {
  LinkTestResult result = healthy_result();
  result.expected->half_rate = 2_Gbps;
  result.pairs[0].transport = "tcp";
  result.all_reduce->carrier = "direct";
  for (LinkPhase& phase : result.pairs[0].phases) {
    for (HalfRate& rate : phase.rates) rate.rate = 1.99_Gbps;
  }
  result.all_reduce->large_bus_bandwidth = 0.2_GBps;
  set_alone(result, "B", 1.4_Gbps);
  const Cluster cluster = test_pair();
  judge_link_test(result, cluster, pairs_of(cluster, {}));
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].rule, "half-slow");
  EXPECT_TRUE(result.withheld.empty());
  for (LinkPhase& phase : result.pairs[0].phases) phase.loads = {{"spark-1", 1, 0.9}, {"spark-2", 1, 0.1}};
  judge_link_test(result, cluster, pairs_of(cluster, {}));
  EXPECT_TRUE(result.findings.empty()) << result.findings[0].rule << ": " << result.findings[0].evidence;
  ASSERT_EQ(result.withheld.size(), 1U);
  EXPECT_EQ(result.withheld[0].rule, "half-slow");
  set_alone(result, "B", 0.26_Gbps);
  EXPECT_EQ(rules_of(result), Rules{"half-degraded"}) << "as no load makes it";
  EXPECT_NE(judge_pair(result)[0].evidence.find("while the CPU was 90% busy"), std::string::npos);
  result.pairs[0].transport = "rdma";
  set_alone(result, "B", 1.4_Gbps);
  EXPECT_EQ(rules_of(result), Rules{"half-slow"}) << "RDMA takes no processor";
}

TEST(LinkJudge, TheCostOfATokenIsThatOf160AllReduces) {
  EXPECT_EQ(
      token_cost(*healthy_result().all_reduce),
      "a 16 KB all-reduce takes about 31.7 us, so a 70B model over 2 nodes spends 5.07 ms of each token on its 160 "
      "all-reduces");
}

TEST(LinkJudge, TheExpectationIsTheClusterFilesBeforeTheCatalogues) {
  Cluster cluster = test_pair();
  EXPECT_EQ(expectation_of(cluster)->half_rate, 100_Gbps);
  cluster.lab = "lab";
  EXPECT_FALSE(expectation_of(cluster)) << "an unshaped lab is as fast as this machine";
  cluster.fabric->half_rate = 2_Gbps;
  EXPECT_EQ(expectation_of(cluster)->source, "the cluster file");
}

TEST(LinkJudge, LostMessagesExplainALowRate) {
  LinkTestResult result = healthy_result();
  set_alone(result, "B", 20_Gbps);
  result.all_reduce->large_bus_bandwidth = 1_GBps;
  const PingResult quick{.size = 8, .count = 1000, .least = {4e-6}, .p50 = {5e-6}, .p99 = {2e-4}, .most = {0.2}};
  result.pairs[0].latencies = {{"A", {quick}, {{"spark-1", 8000, 2}, {"spark-2", 8000, 0}}},
                               {"B", {quick}, {{"spark-1", 8000, 0}, {"spark-2", 8000, 31}}}};
  const std::vector<Finding> findings = judge_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"half-lossy"});
  EXPECT_EQ(findings[0].node, "spark-2");
  EXPECT_NE(findings[0].evidence.find("31 of 8000"), std::string::npos) << findings[0].evidence;
}

TEST(LinkJudge, OnlyTheQuickestMessageTellsOfALateHalf) {
  LinkTestResult result = healthy_result();
  PingResult row{.size = 8, .count = 1000, .least = {4e-6}, .p50 = {2e-3}, .p99 = {3e-3}, .most = {0.2}};
  result.pairs[0].latencies = {{"A", {row}, {}}};
  EXPECT_EQ(rules_of(result), Rules{}) << "a busy processor";
  row.least = Seconds{1e-3};
  result.pairs[0].latencies = {{"A", {row}, {}}};
  EXPECT_EQ(rules_of(result), Rules{"half-late"});
}

}  // namespace
}  // namespace yoke
