// For each rule of the table cases that trigger it and no other.
#pragma once
#include "yoke/check/log_cases_testing.h"
#include "yoke/check/machine_cases_testing.h"

namespace yoke {

// A discovery of the pair: each half hears its other end. No cluster file, as it is about to be written.
inline Cabling made_cabling() {
  Cabling cabling{.topology = Topology::kDirect};
  for (const auto& [half, interface] : {std::pair{"A", kHalfA}, std::pair{"B", kHalfB}}) {
    const LinkEnd a{0, 0, half, interface}, b{1, 0, half, interface};
    cabling.sightings.insert(cabling.sightings.end(), {{a, b}, {b, a}});
    cabling.segments.push_back({{a, b}});
  }
  return cabling;
}

inline Cabling& discover(Survey& facts) {
  if (!facts.cabling) facts.cabling = made_cabling();
  facts.cluster.reset();
  for (SurveyedNode& node : facts.nodes) {
    node.paths.clear();
    node.names.clear();
  }
  return *facts.cabling;
}

// Half B is not heard at either end.
inline void silence_half_b(Survey& facts) {
  Cabling& cabling = discover(facts);
  cabling.segments.pop_back();
  cabling.sightings.resize(2);
}

inline std::vector<RuleCase> cabling_cases() {
  return {
      {"topology-unknown", "ThreeNodesInALine", [](Survey& f) { discover(f).topology.reset(); }, ""},
      {"node-silent", "TheThird",
       [](Survey& f) {
         discover(f);
         f.nodes.push_back({.name = "spark-3", .machine = made_spark(3)});
         for (NetworkInterface& interface : f.nodes[2].machine->interfaces) interface.carrier = !interface.port;
       },
       "spark-3"},
      {"beacon-not-confirmed", "UnknownHostKey",
       [](Survey& f) {
         discover(f).unconfirmed = {{"spark-9", "host key verification failed", ""}};
       },
       "spark-9"},
      {"stranger-heard", "ANeighbour",
       [](Survey& f) {
         discover(f).strangers = {{"spark-2", kHalfA, "spark-9", kHalfA, {}}};
       }},
      {"cable-loop", "OneHalf",
       [](Survey& f) {
         discover(f).loops = {{{{1, 1, "A", "enp1s0f1np1"}, {1, 1, "B", "enP2p1s0f1np1"}}}};
       },
       "spark-2", "enp1s0f1np1"},
      {"halves-crossed", "Breakout",
       [](Survey& f) {
         Cabling& cabling = discover(f);
         cabling.segments = {{{{0, 0, "A", kHalfA}, {1, 0, "B", kHalfB}}}};
         NetworkInterface& half = interface_of(f, 1, kHalfB);
         half.addresses = {made_address(100, 2)};
         rdma_of(f, 1, "roceP2p1s0f0") = made_rdma(half);
         f.nodes[1].machine->routes[2].interface = kHalfB;
         f.nodes[0].machine->interfaces.erase(f.nodes[0].machine->interfaces.begin() + 3);  // the other halves
         f.nodes[1].machine->interfaces.erase(f.nodes[1].machine->interfaces.begin() + 1);
       },
       "spark-1", kHalfA},
      {"one-way", "TheSecondIsDeaf", [](Survey& f) { discover(f).sightings.pop_back(); }, "spark-2", kHalfB},
      {"half-silent", "NoBeacon", silence_half_b, "spark-1", kHalfB},
      {"link-local-addresses", "NvidiasNetplanFile",
       [](Survey& f) {
         discover(f);
         for (SurveyedNode& node : f.nodes) {
           NetworkInterface& half = node.machine->interfaces[1];
           half.addresses = {*parse_ipv4_prefix("169.254." + node.name.substr(6) + ".9/16")};
           node.machine->rdma_devices[0] = made_rdma(half);
           node.machine->routes[2].destination = half.addresses[0].network();
         }
       },
       ""},
  };
}

inline std::vector<RuleCase> all_cases() {
  std::vector<RuleCase> all = link_cases();
  for (auto more : {device_cases(), software_cases(), cabling_cases(), log_cases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline RuleCase case_of(std::string_view rule) {
  for (const RuleCase& one : all_cases()) {
    if (one.rule == rule) return one;
  }
  throw std::out_of_range(std::string(rule));
}

}  // namespace yoke
