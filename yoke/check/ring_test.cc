// What a ring's nodes let pass is told by what was tried through them.
#include <gtest/gtest.h>

#include "yoke/check/facts_testing.h"

namespace yoke::check {
namespace {

// Part of a ring: spark-1 reaches spark-3, on spark-2's other cable, through spark-2.
spec::Survey made_chain() {
  spec::Survey facts = made_pair();
  facts.cluster->fabric->topology = spec::Topology::kRing;
  add_far_end(facts);
  spec::SurveyedNode third{.name = "spark-3", .machine = made_spark(3)};
  third.machine->interfaces[1].addresses = {made_address(102, 3)};
  third.machine->interfaces[3].addresses = {made_address(103, 3)};
  for (const std::size_t i : {0U, 2U}) {
    third.machine->rdma_devices[i] = made_rdma(third.machine->interfaces[i + 1]);
  }
  const auto route = [](int subnet, std::optional<Ipv4> gateway, const char* interface) {
    return spec::Route{.destination = made_address(subnet, 0), .gateway = gateway, .interface = interface};
  };
  std::vector<spec::Route>& back = third.machine->routes;
  back.resize(2);
  back.push_back(route(102, std::nullopt, kRailA));
  back.push_back(route(103, std::nullopt, kRailB));
  back.push_back(route(100, made_address(102, 2).address, kRailA));
  facts.nodes[0].machine->routes.push_back(route(102, made_address(100, 2).address, kRailA));
  facts.nodes[1].machine->routes.push_back(route(102, std::nullopt, "enp1s0f1np1"));
  facts.nodes[0].far = {{.peer = "spark-3",
                         .address = made_address(102, 3).address,
                         .reached = true,
                         .routed = true,
                         .routes = {kRailA}}};
  spec::ClusterNode place = made_place(3);
  place.rails = {{kRailA, made_address(102, 3)}, {kRailB, made_address(103, 3)}};
  facts.cluster->nodes.push_back(std::move(place));
  facts.nodes.push_back(std::move(third));
  for (spec::SurveyedNode& node : facts.nodes) node.machine->nccl[0].version = "2.30.7";
  return facts;
}

TEST(Ring, AFilterOnARingThatLetsPassWhatWasTriedThroughIt) {
  spec::Survey facts = made_chain();
  facts.nodes[1].drops_packets = true;
  facts.nodes[1].forward_drop = "chain f of table inet mine: policy drop";
  spec::RingProbe& far = facts.nodes[0].far[0];
  EXPECT_EQ(rules_of(facts), "") << "it passes, whatever the rules seem to say";
  far.reached = false;
  EXPECT_EQ(rules_of(facts), "docker-forward spark-2 nft forward");
  facts.nodes[1].forward_exceptions = true;
  EXPECT_EQ(rules_of(facts), "docker-forward spark-2 nft forward") << "they are not for this";
  facts.nodes[2].ring_settings = {"net.ipv4.conf.enp1s0f0np0.rp_filter = 1"};
  EXPECT_EQ(rules_of(facts), "ring-path spark-3 ring") << "what fails by something else says nothing of the filter";
  facts.nodes[0].far.clear();
  EXPECT_EQ(rules_of(facts), "") << "not tried, and exceptions: not known";
  facts.nodes[1].forward_exceptions = false;
  EXPECT_EQ(rules_of(facts), "docker-forward spark-2 nft forward");
}

TEST(Ring, APolicyOfIptablesThatLetsPassWhatWasTriedThroughIt) {
  spec::Survey facts = made_chain();
  facts.nodes[1].forward_policy = "DROP";
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[0].far[0].reached = false;
  facts.nodes[0].drops_packets = true;  // of what does not pass through it
  EXPECT_EQ(rules_of(facts), "docker-forward spark-2 iptables FORWARD");
}

}  // namespace
}  // namespace yoke::check
