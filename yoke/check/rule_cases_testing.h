// For each rule of the table cases that trigger it and no other.
#pragma once
#include <tuple>

#include "yoke/check/log_cases_testing.h"
#include "yoke/check/machine_cases_testing.h"
#include "yoke/check/server_cases_testing.h"
#include "yoke/check/software_cases_testing.h"

namespace yoke::check {

// A discovery of the pair: each rail hears its other end. No cluster file, as it is about to be written.
inline spec::Cabling made_cabling() {
  spec::Cabling cabling{.topology = spec::Topology::kDirect};
  for (const auto& [rail, interface] : {std::pair{"A", kRailA}, std::pair{"B", kRailB}}) {
    const spec::LinkEnd a{0, 0, rail, interface}, b{1, 0, rail, interface};
    cabling.adjacencies.insert(cabling.adjacencies.end(), {{a, b}, {b, a}});
    cabling.segments.push_back({{a, b}});
  }
  return cabling;
}

inline spec::Cabling& discover(spec::Survey& facts) {
  if (!facts.cabling) facts.cabling = made_cabling();
  facts.cluster.reset();
  for (spec::SurveyedNode& node : facts.nodes) {
    node.paths.clear();
    node.names.clear();
  }
  return *facts.cabling;
}

// Rail B is not heard at either end.
inline void silence_rail_b(spec::Survey& facts) {
  spec::Cabling& cabling = discover(facts);
  cabling.segments.pop_back();
  cabling.adjacencies.resize(2);
}

// The end of a rail on a node moves to another interface of it.
inline void move_rail(spec::Survey& facts, std::size_t node, const char* from, const char* to, int subnet) {
  spec::NetworkInterface& old_end = interface_of(facts, node, from);
  spec::NetworkInterface& new_end = interface_of(facts, node, to);
  new_end.up = new_end.carrier = true;
  new_end.addresses = {made_address(subnet, static_cast<int>(node) + 1)};
  rdma_of(facts, node, *new_end.rdma_device) = made_rdma(new_end);
  if (&old_end == &new_end) return;
  old_end.up = old_end.carrier = false;
  old_end.addresses.clear();
  rdma_of(facts, node, *old_end.rdma_device) = made_rdma(old_end);
  for (spec::Route& route : facts.nodes[node].machine->routes) {
    if (route.interface == from) route.interface = to;
  }
}

inline void cross_ports(spec::Survey& facts) {
  spec::Cabling& cabling = discover(facts);
  cabling.segments.clear();
  cabling.adjacencies.clear();
  for (const auto& [rail, here, there, subnet] :
       {std::tuple{"A", kRailA, "enp1s0f1np1", 100}, std::tuple{"B", kRailB, "enP2p1s0f1np1", 101}}) {
    move_rail(facts, 1, here, there, subnet);
    const spec::LinkEnd a{0, 0, rail, here}, b{1, 1, rail, there};
    cabling.adjacencies.insert(cabling.adjacencies.end(), {{a, b}, {b, a}});
    cabling.segments.push_back({{a, b}});
  }
}

inline void add_second_cable(spec::Survey& facts) {
  spec::Cabling& cabling = discover(facts);
  for (const auto& [rail, name, subnet] :
       {std::tuple{"A", "enp1s0f1np1", 102}, std::tuple{"B", "enP2p1s0f1np1", 103}}) {
    for (const std::size_t node : {0U, 1U}) {
      move_rail(facts, node, name, name, subnet);
      facts.nodes[node].machine->routes.push_back(
          {.destination = made_address(subnet, 0), .gateway = {}, .interface = name});
    }
    const spec::LinkEnd a{0, 1, rail, name}, b{1, 1, rail, name};
    cabling.adjacencies.insert(cabling.adjacencies.end(), {{a, b}, {b, a}});
    cabling.segments.push_back({{a, b}});
  }
}

inline std::vector<RuleCase> cabling_cases() {
  return {
      {"ports-differ", "TheCableIsInTheOtherPort", cross_ports, "spark-2", "port 1"},
      {"cable-extra", "TwoCables", add_second_cable, ""},
      {"cable-unlisted", "AnotherPart",
       [](spec::Survey& f) {
         for (const char* rail : {kRailA, kRailB}) {
           interface_of(f, 1, rail).module = spec::CableModule{"QSFP28", "copper", "Other", "X-100", 3.0};
         }
         interface_of(f, 0, kRailA).module = spec::CableModule{"QSFP112", "copper", "Amphenol", "NJAAKK0006", 0.5};
       },
       "spark-2", "port 0"},
      {"topology-unknown", "ThreeNodesInALine", [](spec::Survey& f) { discover(f).topology.reset(); }, ""},
      {"node-silent", "TheThird",
       [](spec::Survey& f) {
         discover(f);
         f.nodes.push_back({.name = "spark-3", .machine = made_spark(3)});
         for (spec::NetworkInterface& interface : f.nodes[2].machine->interfaces) interface.carrier = !interface.port;
       },
       "spark-3"},
      {"beacon-not-confirmed", "UnknownHostKey",
       [](spec::Survey& f) {
         discover(f).unconfirmed = {{"spark-9", "host key verification failed", ""}};
       },
       "spark-9"},
      {"unknown-node", "ANeighbour",
       [](spec::Survey& f) {
         discover(f).unknown_nodes = {{"spark-2", kRailA, "spark-9", kRailA, {}}};
       }},
      {"cable-loop", "OneRail",
       [](spec::Survey& f) {
         discover(f).loops = {{{{1, 1, "A", "enp1s0f1np1"}, {1, 1, "B", "enP2p1s0f1np1"}}}};
       },
       "spark-2", "enp1s0f1np1"},
      {"rails-crossed", "Breakout",
       [](spec::Survey& f) {
         spec::Cabling& cabling = discover(f);
         cabling.segments = {{{{0, 0, "A", kRailA}, {1, 0, "B", kRailB}}}};
         spec::NetworkInterface& rail = interface_of(f, 1, kRailB);
         rail.addresses = {made_address(100, 2)};
         rdma_of(f, 1, "roceP2p1s0f0") = made_rdma(rail);
         f.nodes[1].machine->routes[2].interface = kRailB;
         f.nodes[0].machine->interfaces.erase(f.nodes[0].machine->interfaces.begin() + 3);  // the other rails
         f.nodes[1].machine->interfaces.erase(f.nodes[1].machine->interfaces.begin() + 1);
       },
       "spark-1", kRailA},
      {"one-way", "TheSecondIsDeaf", [](spec::Survey& f) { discover(f).adjacencies.pop_back(); }, "spark-2", kRailB},
      {"rail-silent", "NoBeacon", silence_rail_b, "spark-1", kRailB},
      {"link-local-addresses", "NvidiasNetplanFile",
       [](spec::Survey& f) {
         discover(f);
         for (spec::SurveyedNode& node : f.nodes) {
           spec::NetworkInterface& rail = node.machine->interfaces[1];
           rail.addresses = {*parse_ipv4_prefix("169.254." + node.name.substr(6) + ".9/16")};
           node.machine->rdma_devices[0] = made_rdma(rail);
           node.machine->routes[2].destination = rail.addresses[0].network();
         }
       },
       ""},
  };
}

inline std::vector<RuleCase> all_cases() {
  std::vector<RuleCase> all = link_cases();
  for (auto more : {device_cases(), software_cases(), cabling_cases(), log_cases(), gpu_cases(), nvlink_cases(),
                    gpu_network_cases(), server_log_cases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline RuleCase case_of(std::string_view rule) {
  for (const RuleCase& one : all_cases()) {
    if (one.rule == rule) return one;
  }
  throw std::out_of_range(std::string(rule));
}

}  // namespace yoke::check
