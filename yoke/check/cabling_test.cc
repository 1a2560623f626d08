// What a discovery may find: about cables by who heard whom, about addresses by what is there.
#include <gtest/gtest.h>

#include "yoke/check/rule_cases_testing.h"

namespace yoke::check {
namespace {

spec::Survey discovered_pair() {
  spec::Survey facts = made_pair();
  discover(facts);
  return facts;
}

TEST(CablingRules, AHealthyDiscoveryHasNoFinding) { EXPECT_EQ(rules_of(discovered_pair()), ""); }

TEST(CablingRules, ARailThatIsDownIsReportedForTheEndThatIsSwitchedOff) {
  spec::Survey facts = discovered_pair();
  silence_rail_b(facts);
  interface_of(facts, 0, kRailB).carrier = false;
  interface_of(facts, 1, kRailB).up = interface_of(facts, 1, kRailB).carrier = false;
  EXPECT_EQ(rules_of(facts), "rail-down spark-2 enP2p1s0f0np0");
  const spec::Finding found = evaluate(facts).at(0);
  EXPECT_EQ(found.evidence,
            "enP2p1s0f0np0 on spark-2 is down (switched off); enP2p1s0f0np0 on spark-1 is up, but without carrier");
  EXPECT_EQ(found.fix, "'ip link set enP2p1s0f0np0 up' on spark-2");
}

TEST(CablingRules, NothingFollowsFromSilenceWhereNoBeaconsWereSent) {
  spec::Survey facts = discovered_pair();
  silence_rail_b(facts);
  EXPECT_EQ(rules_of(facts), "rail-silent spark-1 enP2p1s0f0np0");
  facts.cabling->source = spec::AdjacencySource::kAddresses;
  facts.cabling->adjacencies.pop_back();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(CablingRules, NobodyHeardIsReportedForEachNode) {
  spec::Survey facts = discovered_pair();
  facts.cabling = spec::Cabling{};
  EXPECT_EQ(rules_of(facts), "node-silent spark-1 -; node-silent spark-2 -; topology-unknown - -");
  EXPECT_EQ(evaluate(facts).at(2).evidence, "no node hears another on a fast interface");
  facts.nodes.clear();
  EXPECT_EQ(rules_of(facts), "topology-unknown - -");
}

TEST(CablingRules, BehindASwitchThatJoinsAllRailsNothingIsCrossed) {
  spec::Survey facts = discovered_pair();
  facts.cabling->topology = spec::Topology::kSwitch;
  facts.cabling->segments = {{{{0, 0, "A", kRailA}, {0, 0, "B", kRailB}, {1, 0, "A", kRailA}, {1, 0, "B", kRailB}}}};
  EXPECT_EQ(rules_of(facts), "");
  interface_of(facts, 1, kRailB).mtu = 1500;
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enP2p1s0f0np0") << "rails meet place by place";
}

TEST(CablingRules, AddressesAreEvaluatedWhereTheyWereAdopted) {
  spec::Survey facts = discovered_pair();
  interface_of(facts, 1, kRailA).addresses = {*parse_ipv4_prefix("192.168.55.2/24")};
  rdma_of(facts, 1, "rocep1s0f0") = made_rdma(interface_of(facts, 1, kRailA));
  interface_of(facts, 1, kRailB).mtu = 1500;
  EXPECT_EQ(rules_of(facts), "subnet-differs spark-2 enp1s0f0np0; mtu-differs spark-2 enP2p1s0f0np0");
  EXPECT_NE(evaluate(facts).at(0).fix.find("--new-addresses"), std::string::npos)
      << "the cluster file is not written yet";
  EXPECT_EQ(evaluate(facts, kNeedsLinks | kNeedsCabling).size(), 0U) << "new ones are proposed";
}

TEST(CablingRules, ASmallMtuIsMendedBySetup) {
  spec::Survey facts = discovered_pair();
  for (const std::size_t node : {0U, 1U}) {
    for (const char* rail : {kRailA, kRailB}) interface_of(facts, node, rail).mtu = 1500;
  }
  EXPECT_EQ(rules_of(facts),
            "mtu-small spark-1 enp1s0f0np0, enP2p1s0f0np0; mtu-small spark-2 enp1s0f0np0, enP2p1s0f0np0");
  EXPECT_NE(evaluate(facts).at(0).fix.find("'yoke link setup' sets MTU 9000"), std::string::npos);
}

}  // namespace
}  // namespace yoke::check
