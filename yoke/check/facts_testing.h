// Facts for tests: two healthy Sparks, joined by one cable in port 0, as the rules see them. A test breaks one thing.
#pragma once
#include <fmt/format.h>

#include <string>

#include "yoke/check/rule.h"
#include "yoke/spec/survey.h"

namespace yoke::check {

inline constexpr const char* kRailA = "enp1s0f0np0";
inline constexpr const char* kRailB = "enP2p1s0f0np0";

inline Ipv4Prefix made_address(int subnet, int host) {
  return {{0xC0A80000U + (static_cast<std::uint32_t>(subnet) << 8U) + static_cast<std::uint32_t>(host)}, 24};
}

inline spec::NetworkInterface made_rail(const char* name, const char* rail, int port, int subnet, int host) {
  const bool second = std::string(rail) == "B";
  spec::NetworkInterface interface { .name = name, .kind = spec::InterfaceKind::kEthernet, .mac = "", .mtu = 9000 };
  interface.up = interface.carrier = port == 0;
  if (port == 0) interface.addresses = {made_address(subnet, host)};
  interface.speed = BitsPerSecond{200e9};
  interface.pci_address = fmt::format("{}:01:00.{}", second ? "0002" : "0000", port);
  interface.pcie = spec::PcieLink{32, 4, 32, 4};
  interface.rdma_device = fmt::format("{}1s0f{}", second ? "roceP2p" : "rocep", port);
  interface.port = port;
  interface.rail = rail;
  return interface;
}

inline spec::RdmaDevice made_rdma(const spec::NetworkInterface& interface) {
  spec::RdmaDevice device{.name = *interface.rdma_device, .state = interface.carrier ? "ACTIVE" : "DOWN"};
  device.link_layer = "Ethernet";
  device.rate = BitsPerSecond{interface.carrier ? 200e9 : 40e9};
  device.interface = interface.name;
  device.firmware = "28.45.4028";
  device.gids = {
      {.index = 0, .type = spec::GidType::kRoceV1, .address = "fe80::1", .ipv4 = {}, .interface = interface.name},
      {.index = 1, .type = spec::GidType::kRoceV2, .address = "fe80::1", .ipv4 = {}, .interface = interface.name}};
  if (!interface.addresses.empty()) {
    const Ipv4 own = interface.addresses.front().address;
    device.gids.push_back({2, spec::GidType::kRoceV1, "::ffff:" + yoke::to_string(own), own, interface.name});
    device.gids.push_back({3, spec::GidType::kRoceV2, "::ffff:" + yoke::to_string(own), own, interface.name});
    device.gid_index = 3;
  }
  return device;
}

inline spec::Machine made_spark(int number) {
  spec::Machine machine{.hostname = fmt::format("spark-{}", number), .architecture = "aarch64", .os = "Ubuntu 24.04"};
  machine.kernel = "6.14.0-1013-nvidia";
  machine.driver = "580.126.09";
  machine.memory = {.total = Bytes{127535084LL << 10}, .available = Bytes{110LL << 30}, .unified = true};
  machine.memory.swap_total = machine.memory.swap_free = Bytes{16LL << 30};
  machine.memory.cached = Bytes{8LL << 30};
  machine.memory.cma_total = Bytes{128LL << 20};
  machine.memory.cma_free = Bytes{117LL << 20};
  spec::Gpu gpu{.index = 0, .name = "NVIDIA GB10"};
  gpu.pci_address = "000f:01:00.0";
  gpu.compute_capability = "12.1";
  gpu.clock_mhz_max = 3003;
  machine.gpus = {gpu};
  spec::NetworkInterface management{
      .name = "enP7s7", .kind = spec::InterfaceKind::kEthernet, .mac = "", .mtu = 1500, .up = true};
  management.carrier = true;
  management.addresses = {made_address(1, 20 + number)};
  machine.interfaces = {management, made_rail(kRailA, "A", 0, 100, number), made_rail("enp1s0f1np1", "A", 1, 0, 0),
                        made_rail(kRailB, "B", 0, 101, number), made_rail("enP2p1s0f1np1", "B", 1, 0, 0)};
  for (std::size_t i = 1; i < machine.interfaces.size(); ++i) {
    machine.interfaces[i].mac = fmt::format("4c:bb:47:0a:{:02x}:{:02x}", number, i);
  }
  for (const spec::NetworkInterface& interface : machine.interfaces) {
    if (interface.rdma_device) machine.rdma_devices.push_back(made_rdma(interface));
  }
  const auto route = [](int subnet, const char* interface) {
    return spec::Route{.destination = made_address(subnet, 0), .gateway = {}, .interface = interface};
  };
  machine.routes = {{.destination = {}, .gateway = made_address(1, 1).address, .interface = "enP7s7"},
                    route(1, "enP7s7"),
                    route(100, kRailA),
                    route(101, kRailB)};
  machine.nccl = {{.path = "/usr/lib/libnccl.so.2",
                   .version = "2.28.9+cuda13.0",
                   .build_id = "c0db9360aa",
                   .size = {},
                   .architectures = {"sm_90", "sm_120"},
                   .ptx = {"compute_120"}}};
  machine.memlock_unlimited = true;
  machine.ip_forward = true;
  return machine;
}

inline spec::ClusterNode made_place(int number) {
  return {.name = fmt::format("spark-{}", number),
          .address = yoke::to_string(made_address(1, 20 + number).address),
          .user = {},
          .rails = {{kRailA, made_address(100, number)}, {kRailB, made_address(101, number)}}};
}

inline spec::Survey made_pair() {
  spec::Survey facts;
  facts.cluster = spec::Cluster{.name = "desk", .nodes = {made_place(1), made_place(2)}, .hardware = "spark"};
  facts.cluster->fabric = spec::Fabric{};
  for (const int number : {1, 2}) {
    spec::SurveyedNode node{.name = fmt::format("spark-{}", number), .machine = made_spark(number)};
    const int other = 3 - number;
    for (const auto& [interface, subnet] : {std::pair{kRailA, 100}, std::pair{kRailB, 101}}) {
      node.paths.push_back({.interface = interface,
                            .peer = fmt::format("spark-{}", other),
                            .peer_address = made_address(subnet, other).address,
                            .large_size = 9000,
                            .small = true,
                            .large = true,
                            .connects = true});
    }
    node.names = {{fmt::format("spark-{}", other), {made_address(1, 20 + other).address}}};
    node.clock_ahead = Seconds{0.004};
    facts.nodes.push_back(std::move(node));
  }
  return facts;
}

// As a healthy pair measures: each rail 96 Gb/s alone, 94 beside the other.
inline spec::Measurement made_measurement() {
  spec::Measurement measurement{
      .expected = BitsPerSecond{100e9}, .expected_source = "the catalogue", .transports = {"rdma"}};
  for (const auto& [from, to] : {std::pair{"spark-1", "spark-2"}, std::pair{"spark-2", "spark-1"}}) {
    for (const char* interface : {kRailA, kRailB}) {
      measurement.rails.push_back({.from = from,
                                   .to = to,
                                   .from_interface = interface,
                                   .to_interface = interface,
                                   .alone = BitsPerSecond{96e9},
                                   .together = BitsPerSecond{94e9},
                                   .both_ways = BitsPerSecond{92e9},
                                   .failure = {}});
    }
  }
  measurement.all_reduce = spec::AllReduceMeasurement{2, "nccl", Seconds{31e-6}, Bytes{16 << 20}, BytesPerSecond{21e9}};
  return measurement;
}

inline spec::NetworkInterface& interface_of(spec::Survey& facts, std::size_t node, std::string_view name) {
  for (spec::NetworkInterface& interface : facts.nodes.at(node).machine->interfaces) {
    if (interface.name == name) return interface;
  }
  throw std::out_of_range("no such interface");
}

inline spec::RdmaDevice& rdma_of(spec::Survey& facts, std::size_t node, std::string_view name) {
  for (spec::RdmaDevice& device : facts.nodes.at(node).machine->rdma_devices) {
    if (device.name == name) return device;
  }
  throw std::out_of_range("no such device");
}

// "rule node subject; …" of all that the rules find.
inline std::string rules_of(const spec::Survey& facts) {
  std::string names;
  for (const spec::Finding& finding : evaluate(facts)) {
    names += fmt::format("{}{} {} {}", names.empty() ? "" : "; ", finding.rule, finding.node.value_or("-"),
                         finding.subject.value_or("-"));
  }
  return names;
}

inline void set_in_environment(spec::Survey& facts, std::string name, std::string value) {
  facts.nodes[1].machine->settings.push_back({std::move(name), std::move(value), "environment"});
}

// The end of spark-2's other cable.
inline void add_far_end(spec::Survey& facts) {
  spec::NetworkInterface& interface = interface_of(facts, 1, "enp1s0f1np1");
  interface.up = interface.carrier = true;
  interface.addresses = {made_address(102, 2)};
  rdma_of(facts, 1, "rocep1s0f1") = made_rdma(interface);
  facts.cluster->nodes[1].rails.push_back({interface.name, made_address(102, 2)});
  facts.cluster->nodes[1].unused = {{"enP2p1s0f1np1", "the other rail of this cable is left out of the test"}};
}

// A ring as the rules see it: spark-1 reaches spark-2's far end through it.
inline spec::Survey ring_with_far_end() {
  spec::Survey facts = made_pair();
  facts.cluster->fabric->topology = spec::Topology::kRing;
  for (spec::SurveyedNode& node : facts.nodes) node.machine->nccl[0].version = "2.30.7";
  add_far_end(facts);
  facts.nodes[0].far = {
      {.peer = "spark-2", .address = made_address(102, 2).address, .reached = false, .routed = false}};
  return facts;
}

}  // namespace yoke::check
