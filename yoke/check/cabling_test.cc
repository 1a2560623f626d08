// What a discovery may find: about cables by who heard whom, about addresses by what is there.
#include <gtest/gtest.h>

#include "yoke/check/rule_cases_testing.h"

namespace yoke {
namespace {

Survey discovered_pair() {
  Survey facts = made_pair();
  discover(facts);
  return facts;
}

TEST(CablingRules, AHealthyDiscoveryHasNoFinding) { EXPECT_EQ(rules_of(discovered_pair()), ""); }

TEST(CablingRules, AHalfThatIsDownIsToldOfTheEndThatIsSwitchedOff) {
  Survey facts = discovered_pair();
  silence_half_b(facts);
  interface_of(facts, 0, kHalfB).carrier = false;
  interface_of(facts, 1, kHalfB).up = interface_of(facts, 1, kHalfB).carrier = false;
  EXPECT_EQ(rules_of(facts), "half-down spark-2 enP2p1s0f0np0");
  const Finding found = judge(facts).at(0);
  EXPECT_EQ(found.evidence,
            "enP2p1s0f0np0 on spark-2 is down (switched off); enP2p1s0f0np0 on spark-1 is up, but without carrier");
  EXPECT_EQ(found.fix, "'ip link set enP2p1s0f0np0 up' on spark-2");
}

TEST(CablingRules, NothingFollowsFromSilenceWhereNoBeaconsWereSent) {
  Survey facts = discovered_pair();
  silence_half_b(facts);
  EXPECT_EQ(rules_of(facts), "half-silent spark-1 enP2p1s0f0np0");
  facts.cabling->source = SightingSource::kAddresses;
  facts.cabling->sightings.pop_back();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(CablingRules, NobodyHeardIsToldForEachNode) {
  Survey facts = discovered_pair();
  facts.cabling = Cabling{};
  EXPECT_EQ(rules_of(facts), "node-silent spark-1 -; node-silent spark-2 -; topology-unknown - -");
  EXPECT_EQ(judge(facts).at(2).evidence, "no node hears another on a fast interface");
  facts.nodes.clear();
  EXPECT_EQ(rules_of(facts), "topology-unknown - -");
}

TEST(CablingRules, BehindASwitchThatJoinsAllHalvesNothingIsCrossed) {
  Survey facts = discovered_pair();
  facts.cabling->topology = Topology::kSwitch;
  facts.cabling->segments = {{{{0, 0, "A", kHalfA}, {0, 0, "B", kHalfB}, {1, 0, "A", kHalfA}, {1, 0, "B", kHalfB}}}};
  EXPECT_EQ(rules_of(facts), "");
  interface_of(facts, 1, kHalfB).mtu = 1500;
  EXPECT_EQ(rules_of(facts), "mtu-differs spark-2 enP2p1s0f0np0") << "halves meet place by place";
}

TEST(CablingRules, AddressesAreJudgedWhereTheyWereAdopted) {
  Survey facts = discovered_pair();
  interface_of(facts, 1, kHalfA).addresses = {*parse_ipv4_prefix("192.168.55.2/24")};
  rdma_of(facts, 1, "rocep1s0f0") = made_rdma(interface_of(facts, 1, kHalfA));
  interface_of(facts, 1, kHalfB).mtu = 1500;
  EXPECT_EQ(rules_of(facts), "subnet-differs spark-2 enp1s0f0np0; mtu-differs spark-2 enP2p1s0f0np0");
  EXPECT_NE(judge(facts).at(0).fix.find("--readdress"), std::string::npos) << "the cluster file is not written yet";
  EXPECT_EQ(judge(facts, kNeedsLinks | kNeedsCabling).size(), 0U) << "new ones are proposed";
}

TEST(CablingRules, APlainMtuIsToldWithTheFilesKey) {
  Survey facts = discovered_pair();
  for (const std::size_t node : {0U, 1U}) {
    for (const char* half : {kHalfA, kHalfB}) interface_of(facts, node, half).mtu = 1500;
  }
  EXPECT_EQ(rules_of(facts),
            "mtu-small spark-1 enp1s0f0np0, enP2p1s0f0np0; mtu-small spark-2 enp1s0f0np0, enP2p1s0f0np0");
  EXPECT_EQ(judge(facts).at(0).fix, "set mtu: 9000 in the cluster file, then 'yoke link setup'");
}

}  // namespace
}  // namespace yoke
