#include "yoke/survey/link_evaluate.h"

#include <gtest/gtest.h>

#include "yoke/link/cluster_testing.h"
#include "yoke/link/expectation.h"

namespace yoke::survey {
namespace {

using namespace literals;

link::LinkInterface healthy(const std::string& name, int node) {
  const int subnet = name == "enp1s0f0np0" ? 100 : 101;
  return {
      .name = name, .mtu = 9000, .up = true, .carrier = true, .ipv4 = {fmt::format("192.168.{}.{}/24", subnet, node)}};
}

// A pair of Sparks on which all is well: 95 Gb/s a rail, 190 together.
link::LinkTestResult healthy_result() {
  link::LinkTestResult result{.cluster = "desk", .expected = link::LinkExpectation{100_Gbps, "the catalogue"}};
  link::PairResult pair{.a = "spark-1", .b = "spark-2", .transport = "rdma"};
  link::LinkPhase both{.kind = link::LinkPhaseKind::kBothWays};
  for (const std::string rail : {"A", "B"}) {
    const std::string interface = rail == "A" ? "enp1s0f0np0" : "enP2p1s0f0np0";
    pair.rails.push_back({rail,
                          {.interface = healthy(interface, 1), .route = interface},
                          {.interface = healthy(interface, 2), .route = interface}});
    for (const bool forward : {true, false}) {
      const link::RailRate rate{rail, forward ? "spark-1" : "spark-2", forward ? "spark-2" : "spark-1", 95_Gbps};
      pair.phases.push_back({link::LinkPhaseKind::kAlone, {rate}, {}});
      both.rates.push_back(rate);
    }
  }
  for (const std::string from : {"spark-1", "spark-2"}) {
    link::LinkPhase together{.kind = link::LinkPhaseKind::kTogether};
    for (const link::RailRate& rate : both.rates) {
      if (rate.from == from) together.rates.push_back(rate);
    }
    pair.phases.push_back(together);
  }
  pair.phases.push_back(both);
  result.pairs = {pair};
  result.all_reduce = link::AllReduceResult{
      .ranks = 2, .transport = "nccl", .small_time = {31.7e-6}, .large_size = 16_MiB, .large_bus_bandwidth = 22_GBps};
  return result;
}

std::vector<spec::Finding> evaluate_pair(link::LinkTestResult result) {
  const spec::Cluster cluster = link::test_pair();
  evaluate_link_test(result, cluster, link::pairs_of(cluster, {}));
  return result.findings;
}

std::vector<std::string> rules_of(const link::LinkTestResult& result) {
  std::vector<std::string> rules;
  for (const spec::Finding& finding : evaluate_pair(result)) rules.push_back(finding.rule);
  return rules;
}
using Rules = std::vector<std::string>;

void set_alone(link::LinkTestResult& result, const std::string& rail, BitsPerSecond rate) {
  for (link::LinkPhase& phase : result.pairs[0].phases) {
    if (phase.kind == link::LinkPhaseKind::kAlone && phase.rates[0].rail == rail) phase.rates[0].rate = rate;
  }
}

TEST(LinkEvaluate, AHealthyLinkHasNoFinding) { EXPECT_EQ(rules_of(healthy_result()), Rules{}); }

TEST(LinkEvaluate, WithoutAnExpectationNoRateIsTooLow) {
  link::LinkTestResult result = healthy_result();
  result.expected.reset();
  set_alone(result, "B", 500_Gbps);  // far more than together: a processor that both share
  result.all_reduce->large_bus_bandwidth = 1_GBps;
  EXPECT_EQ(rules_of(result), Rules{});
}

TEST(LinkEvaluate, TheThirteenGigabitStateIsNamedWithBothCures) {
  link::LinkTestResult result = healthy_result();
  set_alone(result, "B", 13_Gbps);
  const auto findings = evaluate_pair(result);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "rail-degraded");
  EXPECT_EQ(findings[0].severity, spec::Severity::kError);
  EXPECT_NE(findings[0].what.find("rail B"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("reboot"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("power"), std::string::npos);
}

TEST(LinkEvaluate, SlowerThanExpectedIsAWarning) {
  link::LinkTestResult result = healthy_result();
  set_alone(result, "A", 40_Gbps);
  EXPECT_EQ(evaluate_pair(result).at(0).rule, "rail-slow");
  EXPECT_EQ(evaluate_pair(result).at(0).severity, spec::Severity::kWarning);
  set_alone(result, "A", 85_Gbps);
  EXPECT_EQ(rules_of(result), Rules{});
}

TEST(LinkEvaluate, RailsThatShareAPathAreFoundByMeasuringThemTogether) {
  link::LinkTestResult result = healthy_result();
  for (link::LinkPhase& phase : result.pairs[0].phases) {
    if (phase.kind != link::LinkPhaseKind::kTogether) continue;
    for (link::RailRate& rate : phase.rates) rate.rate = 50_Gbps;
  }
  EXPECT_EQ(rules_of(result), (Rules{"rails-share", "rails-share"})) << "once for each direction";
}

TEST(LinkEvaluate, ARailThatCarriesNothingIsReportedByTheEndThatIsDown) {
  link::LinkTestResult result = healthy_result();
  link::PairResult& pair = result.pairs[0];
  pair.failures = {{"B", "no answer"}};
  pair.phases.clear();
  pair.rails[1].a.interface->carrier = false;
  pair.rails[1].b.interface->up = pair.rails[1].b.interface->carrier = false;
  const auto findings = evaluate_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"rail-down"});
  EXPECT_EQ(findings[0].node, "spark-2") << "the lost carrier at the other end is only its shadow";
  EXPECT_EQ(findings[0].subject, "enP2p1s0f0np0");
  EXPECT_NE(findings[0].what.find("rail B (enP2p1s0f0np0) on spark-2"), std::string::npos) << findings[0].what;
  pair.rails[1].a.interface = healthy("enP2p1s0f0np0", 1);
  pair.rails[1].b.interface = healthy("enP2p1s0f0np0", 2);
  ASSERT_EQ(rules_of(result), Rules{"rail-dead"});
  EXPECT_NE(evaluate_pair(result)[0].fix.find("--transport tcp"), std::string::npos);
  pair.transport = "tcp";
  EXPECT_NE(evaluate_pair(result)[0].fix.find("firewall"), std::string::npos);
  pair.rails[1].b.interface->ipv4.clear();
  EXPECT_EQ(rules_of(result), Rules{"rail-unaddressed"});
  pair.rails[1].b.interface.reset();
  EXPECT_EQ(rules_of(result), Rules{"interface-missing"});
}

TEST(LinkEvaluate, MtuRouteAndCountersAreEvaluated) {
  link::LinkTestResult result = healthy_result();
  result.pairs[0].rails[0].b.interface->mtu = 1500;
  EXPECT_EQ(rules_of(result), Rules{"mtu-differs"});
  EXPECT_EQ(evaluate_pair(result).at(0).node, "spark-2");
  result.pairs[0].rails[0].a.interface->mtu = 1500;
  EXPECT_EQ(rules_of(result), (Rules{"mtu-small", "mtu-small"})) << "once for each node";
  result = healthy_result();
  result.pairs[0].rails[0].a.route = "enP7s7";
  EXPECT_EQ(rules_of(result), Rules{"route-elsewhere"});
  result = healthy_result();
  result.pairs[0].counters = {{"spark-1", "A", "enp1s0f0np0", "rx_dropped", 5}};
  EXPECT_EQ(rules_of(result), Rules{}) << "drops are told, but no damage";
  result.pairs[0].counters.push_back({"spark-1", "A", "enp1s0f0np0", "symbol_error", 1});
  EXPECT_EQ(rules_of(result), Rules{"errors-counted"});
}

TEST(LinkEvaluate, ASlowCollectiveOverHealthyRailsIsToldApart) {
  link::LinkTestResult result = healthy_result();
  result.all_reduce->large_bus_bandwidth = 3_GBps;
  EXPECT_EQ(rules_of(result), Rules{"collective-slow"});
  result.all_reduce->transport = "direct";
  EXPECT_EQ(rules_of(result), Rules{}) << "sockets are not compared with RDMA";
  result.all_reduce.reset();
  result.all_reduce_missing = "--no-all-reduce was given";
  EXPECT_EQ(rules_of(result), Rules{});
  result.all_reduce_failure = "rank 1 is lost";
  EXPECT_EQ(rules_of(result), Rules{"collective-failed"});
}

TEST(LinkEvaluate, AnNcclThatFailsIsReportedThoughSocketsTookItsPlace) {
  link::LinkTestResult result = healthy_result();
  result.all_reduce->transport = "direct";
  result.all_reduce_failure = "NCCL: unhandled system error";
  const auto findings = evaluate_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"collective-failed"});
  EXPECT_NE(findings[0].what.find("by NCCL"), std::string::npos) << findings[0].what;
  EXPECT_NE(findings[0].evidence.find("system error"), std::string::npos);
}

TEST(LinkEvaluate, RatesByTcpOnFastRailsAreAFloorOfWhichOnlyTheLowestCount) {
  link::LinkTestResult result = healthy_result();
  result.pairs[0].transport = "tcp";
  result.all_reduce->transport = "direct";
  result.all_reduce->large_bus_bandwidth = 3_GBps;
  for (link::LinkPhase& phase : result.pairs[0].phases) {
    for (link::RailRate& rate : phase.rates) rate.rate = phase.kind == link::LinkPhaseKind::kAlone ? 40_Gbps : 20_Gbps;
  }
  EXPECT_EQ(rules_of(result), Rules{}) << "as a healthy pair without perftest";
  set_alone(result, "B", 12.9_Gbps);
  EXPECT_EQ(rules_of(result), Rules{"rail-degraded"});
}

TEST(LinkEvaluate, TwoMeasurementsThatDifferAreReportedAsThatAndNeverHealthy) {
  link::LinkTestResult result = healthy_result();
  set_alone(result, "B", 40_Gbps);
  for (link::LinkPhase& phase : result.pairs[0].phases) {
    if (phase.kind == link::LinkPhaseKind::kAlone && phase.rates[0].rail == "B") phase.rates[0].again = 95_Gbps;
  }
  const auto findings = evaluate_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"rail-unstable"});
  EXPECT_NE(findings[0].what.find("carries 40 Gb/s and, measured again, 95 Gb/s"), std::string::npos)
      << findings[0].what;
}

TEST(LinkEvaluate, WhatABusyMachineCarriesByTcpIsNotEvaluatedAndThatIsSaid) {
  link::LinkTestResult result = healthy_result();
  result.expected->rail_rate = 2_Gbps;
  result.pairs[0].transport = "tcp";
  result.all_reduce->transport = "direct";
  for (link::LinkPhase& phase : result.pairs[0].phases) {
    for (link::RailRate& rate : phase.rates) rate.rate = 1.99_Gbps;
  }
  result.all_reduce->large_bus_bandwidth = 0.2_GBps;
  set_alone(result, "B", 1.4_Gbps);
  const spec::Cluster cluster = link::test_pair();
  evaluate_link_test(result, cluster, link::pairs_of(cluster, {}));
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].rule, "rail-slow");
  EXPECT_TRUE(result.withheld.empty());
  for (link::LinkPhase& phase : result.pairs[0].phases) phase.loads = {{"spark-1", 1, 0.9}, {"spark-2", 1, 0.1}};
  evaluate_link_test(result, cluster, link::pairs_of(cluster, {}));
  EXPECT_TRUE(result.findings.empty()) << result.findings[0].rule << ": " << result.findings[0].evidence;
  ASSERT_EQ(result.withheld.size(), 1U);
  EXPECT_EQ(result.withheld[0].rule, "rail-slow");
  set_alone(result, "B", 0.26_Gbps);
  EXPECT_EQ(rules_of(result), Rules{"rail-degraded"}) << "as no load makes it";
  EXPECT_NE(evaluate_pair(result)[0].evidence.find("while the CPU was 90% busy"), std::string::npos);
  result.pairs[0].transport = "rdma";
  set_alone(result, "B", 1.4_Gbps);
  EXPECT_EQ(rules_of(result), Rules{"rail-slow"}) << "RDMA takes no processor";
}

TEST(LinkEvaluate, TheCostOfATokenIsThatOf160AllReduces) {
  EXPECT_EQ(link::token_cost(*healthy_result().all_reduce),
            "16 KB in 31.7 us (about 5.07 ms per token of a 70B model, which has 160 all-reduces)");
}

TEST(LinkEvaluate, TheExpectationIsTheClusterFilesBeforeTheCatalogues) {
  spec::Cluster cluster = link::test_pair();
  EXPECT_EQ(link::expectation_of(cluster)->rail_rate, 100_Gbps);
  cluster.lab = "lab";
  EXPECT_FALSE(link::expectation_of(cluster)) << "an unshaped lab is as fast as this machine";
  cluster.fabric->rail_rate = 2_Gbps;
  EXPECT_EQ(link::expectation_of(cluster)->source, "the cluster file");
}

TEST(LinkEvaluate, LostMessagesExplainALowRate) {
  link::LinkTestResult result = healthy_result();
  set_alone(result, "B", 20_Gbps);
  result.all_reduce->large_bus_bandwidth = 1_GBps;
  const link::PingResult quick{.size = 8, .count = 1000, .min = {4e-6}, .p50 = {5e-6}, .p99 = {2e-4}, .max = {0.2}};
  result.pairs[0].latencies = {{"A", {quick}, {{"spark-1", 8000, 2}, {"spark-2", 8000, 0}}},
                               {"B", {quick}, {{"spark-1", 8000, 0}, {"spark-2", 8000, 31}}}};
  const std::vector<spec::Finding> findings = evaluate_pair(result);
  ASSERT_EQ(rules_of(result), Rules{"rail-lossy"});
  EXPECT_EQ(findings[0].node, "spark-2");
  EXPECT_NE(findings[0].evidence.find("31 of 8000"), std::string::npos) << findings[0].evidence;
}

TEST(LinkEvaluate, OnlyTheQuickestMessageReportsALateRail) {
  link::LinkTestResult result = healthy_result();
  link::PingResult row{.size = 8, .count = 1000, .min = {4e-6}, .p50 = {2e-3}, .p99 = {3e-3}, .max = {0.2}};
  result.pairs[0].latencies = {{"A", {row}, {}}};
  EXPECT_EQ(rules_of(result), Rules{}) << "a busy processor";
  row.min = Seconds{1e-3};
  result.pairs[0].latencies = {{"A", {row}, {}}};
  EXPECT_EQ(rules_of(result), Rules{"rail-late"});
}

}  // namespace
}  // namespace yoke::survey
