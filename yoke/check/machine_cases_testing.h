// Cases of the rules about machines, links and rates: two healthy Sparks (facts_testing.h) and what breaks them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/check/facts_testing.h"

namespace yoke::check {

using Break = std::function<void(spec::Survey&)>;

struct RuleCase {
  const char* rule;
  const char* name;
  Break break_it;
  const char* node = "spark-2";  // empty: the whole cluster
  const char* subject = nullptr;
};

inline void set(spec::Survey& facts, std::string name, std::string value) {
  facts.nodes[1].machine->settings.push_back({std::move(name), std::move(value), "/etc/nccl.conf"});
}

inline void fail(spec::Survey& facts, spec::NodeFailureKind kind) {
  facts.nodes[1].machine.reset();
  facts.nodes[1].paths.clear();
  facts.nodes[1].failure = spec::NodeFailure{kind, "no", "do"};
  // What a machine that is off does to the other's link.
  for (const char* rail : {kRailA, kRailB}) interface_of(facts, 0, rail).carrier = false;
}

// As healthy, unless another case has measured something already: cases can be joined.
inline void ensure_measured(spec::Survey& facts) {
  if (!facts.measurement) facts.measurement = made_measurement();
}

inline void measure(spec::Survey& facts, const std::function<void(spec::RailMeasurement&)>& change,
                    bool rail_b_only = true) {
  ensure_measured(facts);
  for (spec::RailMeasurement& rail : facts.measurement->rails) {
    if (!rail_b_only || rail.from_interface == kRailB) change(rail);
  }
}

inline void make_three_gpus(spec::Survey& facts, std::vector<std::vector<std::string>> paths) {
  facts.nodes[1].machine->topology =
      spec::DeviceTopology{{"GPU0", "GPU1", "GPU2", "mlx5_0", "mlx5_1"}, std::move(paths)};
}

inline std::vector<RuleCase> link_cases() {
  return {
      {"ssh-asks", "Asks", [](spec::Survey& f) { fail(f, spec::NodeFailureKind::kAsks); }},
      {"node-unreachable", "Off", [](spec::Survey& f) { fail(f, spec::NodeFailureKind::kUnreachable); }},
      {"node-unread", "Unread", [](spec::Survey& f) { fail(f, spec::NodeFailureKind::kOther); }},
      {"node-twice", "OneAddressForBoth", [](spec::Survey& f) { f.nodes[1].machine = f.nodes[0].machine; }},
      {"nodes-swapped", "TheOtherWasNotSeen",
       [](spec::Survey& f) {
         f.nodes[0] = {.name = "spark-1"};
         f.nodes[1].machine = made_spark(1);
       }},
      {"address-wifi", "Wifi", [](spec::Survey& f) { interface_of(f, 1, "enP7s7").kind = spec::InterfaceKind::kWifi; }},
      {"address-bridge", "Docker",
       [](spec::Survey& f) {
         f.cluster->nodes[1].address = "172.17.0.1";
         spec::NetworkInterface bridge{.name = "docker0", .kind = spec::InterfaceKind::kBridge, .mac = ""};
         bridge.addresses = {*parse_ipv4_prefix("172.17.0.1/16")};
         f.nodes[1].machine->interfaces.push_back(bridge);
       }},
      {"name-wrong", "Elsewhere", [](spec::Survey& f) { f.nodes[0].names[0].addresses = {*parse_ipv4("10.9.9.9")}; },
       "spark-1", "spark-2"},
      {"name-wrong", "Loopback", [](spec::Survey& f) { f.nodes[0].names[0].addresses = {*parse_ipv4("127.0.1.1")}; },
       "spark-1", "spark-2"},
      {"interface-missing", "Renamed", [](spec::Survey& f) { f.cluster->nodes[1].rails[1].interface = "eth9"; },
       "spark-2", "eth9"},
      {"rail-unlisted", "OneRailLeftOut", [](spec::Survey& f) { f.cluster->nodes[1].rails.pop_back(); }, "spark-2",
       kRailB},
      {"rail-unlisted", "NoRailsInTheFile",
       [](spec::Survey& f) {
         for (spec::ClusterNode& node : f.cluster->nodes) node.rails.clear();
         for (spec::SurveyedNode& node : f.nodes) node.paths.clear();
       },
       ""},
      {"port-down", "CablePulledHere",
       [](spec::Survey& f) {
         for (const char* rail : {kRailA, kRailB}) {
           interface_of(f, 1, rail).up = interface_of(f, 1, rail).carrier = false;
           interface_of(f, 0, rail).carrier = false;
         }
       },
       "spark-2", "port 0"},
      {"port-down", "NoCarrierAtBothEndsIsToldOnce",
       [](spec::Survey& f) {
         for (const std::size_t node : {0U, 1U}) {
           for (const char* rail : {kRailA, kRailB}) interface_of(f, node, rail).carrier = false;
         }
       },
       "spark-1"},
      {"rail-down", "RailSwitchedOff",
       [](spec::Survey& f) {
         interface_of(f, 1, kRailB).up = interface_of(f, 1, kRailB).carrier = false;
         interface_of(f, 0, kRailB).carrier = false;
       },
       "spark-2", kRailB},
      {"setup-incomplete", "TheSecondNodeLacksItsFiles",
       [](spec::Survey& f) {
         f.nodes[0].setup_files.assign(spec::kSetupFiles.begin(), spec::kSetupFiles.end());
         f.nodes[1].setup_files = {std::string(spec::kSetupFiles[0])};
       }},
      {"not-set-up", "FromTheFactory",
       [](spec::Survey& f) {
         for (spec::SurveyedNode& node : f.nodes) {
           node.paths.clear();
           for (spec::NetworkInterface& interface : node.machine->interfaces) {
             if (!interface.port) continue;
             interface.addresses.clear();
             interface.mtu = 1500;
           }
         }
       },
       ""},
      {"rail-unaddressed", "NoAddress", [](spec::Survey& f) { interface_of(f, 1, kRailB).addresses.clear(); },
       "spark-2", kRailB},
      {"address-differs", "OtherHost",
       [](spec::Survey& f) {
         interface_of(f, 1, kRailA).addresses = {made_address(100, 77)};
         for (spec::GidEntry& gid : rdma_of(f, 1, "rocep1s0f0").gids) {
           if (gid.ipv4) gid.ipv4 = made_address(100, 77).address;
         }
       },
       "spark-2", kRailA},
      {"address-twice", "ThePeersAddressToo",
       [](spec::Survey& f) {
         interface_of(f, 1, kRailB).addresses.push_back(made_address(101, 1));
         f.nodes[0].paths[1].small = f.nodes[0].paths[1].large = f.nodes[0].paths[1].connects = false;
       },
       "spark-2", kRailB},
      {"address-twice", "OnTheManagementPortOfThePeer",
       [](spec::Survey& f) { interface_of(f, 1, "enP7s7").addresses.push_back(made_address(101, 1)); }, "spark-2",
       "enP7s7"},
      {"prefix-differs", "AHost", [](spec::Survey& f) { interface_of(f, 1, kRailB).addresses[0].length = 32; },
       "spark-2", kRailB},
      {"prefix-differs", "AllOf192168", [](spec::Survey& f) { interface_of(f, 1, kRailA).addresses[0].length = 16; },
       "spark-2", kRailA},
      {"prefix-differs", "WithoutAClusterFile",
       [](spec::Survey& f) {
         f.cluster.reset();
         interface_of(f, 1, kRailB).addresses[0].length = 25;
       },
       "spark-2", kRailB},
      {"subnet-differs", "OtherNetwork",
       [](spec::Survey& f) {
         interface_of(f, 1, kRailB).addresses = {made_address(55, 2)};
         for (spec::GidEntry& gid : rdma_of(f, 1, "roceP2p1s0f0").gids) {
           if (gid.ipv4) gid.ipv4 = made_address(55, 2).address;
         }
       },
       "spark-2", kRailB},
      {"subnet-shared", "OneNetwork",
       [](spec::Survey& f) {
         interface_of(f, 1, kRailB).addresses = {made_address(100, 102)};
         for (spec::GidEntry& gid : rdma_of(f, 1, "roceP2p1s0f0").gids) {
           if (gid.ipv4) gid.ipv4 = made_address(100, 102).address;
         }
       },
       "spark-2", kRailB},
      {"subnet-shared", "WithTheManagementPort",
       [](spec::Survey& f) { interface_of(f, 1, "enP7s7").addresses.push_back(made_address(101, 77)); }, "spark-2",
       "enP7s7"},
      {"mtu-differs", "OneEnd", [](spec::Survey& f) { interface_of(f, 1, kRailB).mtu = 1500; }, "spark-2", kRailB},
      {"mtu-small", "BothEndsOfBothRails",
       [](spec::Survey& f) {
         f.nodes.pop_back();  // one machine, so that one is reported
         f.nodes[0].paths.clear();
         for (const char* rail : {kRailA, kRailB}) interface_of(f, 0, rail).mtu = 1500;
       },
       "spark-1"},
      {"jumbo-blocked", "SwitchInBetween",
       [](spec::Survey& f) { f.nodes[0].paths[1].large = f.nodes[1].paths[1].large = false; }, "spark-1", kRailB},
      {"route-elsewhere", "HostRoutes",
       [](spec::Survey& f) {
         auto& routes = f.nodes[1].machine->routes;
         routes.insert(routes.begin(), {.destination = Ipv4Prefix{made_address(100, 1).address, 32},
                                        .gateway = made_address(1, 21).address,
                                        .interface = "enP7s7"});
         f.nodes[0].paths[0].small = f.nodes[0].paths[0].large = false;  // its answers come by another way
       },
       "spark-2", "enP7s7"},
      {"route-elsewhere", "ByTheOtherRail",
       [](spec::Survey& f) {
         f.nodes[1].paths[0].routed = true;
         f.nodes[1].paths[0].routes = {kRailB};
         f.nodes[0].paths[0].small = f.nodes[0].paths[0].large = f.nodes[0].paths[0].connects = false;
       },
       "spark-2", kRailB},
      {"route-elsewhere", "ByBothRails",
       [](spec::Survey& f) {
         f.nodes[1].paths[0].routed = true;
         f.nodes[1].paths[0].routes = {kRailA, kRailB};
       },
       "spark-2", kRailB},
      {"route-missing", "NoneOrABlackHole",
       [](spec::Survey& f) {
         f.nodes[1].paths[1].routed = false;
         f.nodes[0].paths[1].small = f.nodes[0].paths[1].large = f.nodes[0].paths[1].connects = false;
       },
       "spark-2", kRailB},
      {"rail-silent", "NoAnswer",
       [](spec::Survey& f) {
         for (spec::SurveyedNode& node : f.nodes) {
           node.paths[1].small = node.paths[1].large = node.paths[1].connects = false;
         }
       },
       "spark-1", kRailB},
      {"firewall", "SwallowsConnections",
       [](spec::Survey& f) { f.nodes[0].paths[0].connects = f.nodes[0].paths[1].connects = false; }},
      {"firewall", "OfTheCallerWhereOnlyItDropsPackets",
       [](spec::Survey& f) {
         f.nodes[0].drops_packets = false;
         f.nodes[1].drops_packets = true;
         f.nodes[1].paths[1].connects = false;
       },
       "spark-2", kRailB},
      {"forwarding-off", "RingNode",
       [](spec::Survey& f) {
         f.nodes[0].machine->routes.push_back(
             {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kRailA});
         f.nodes[1].machine->ip_forward = false;
       }},
      {"docker-forward", "RingNodeWithDocker",
       [](spec::Survey& f) {
         f.nodes[0].machine->routes.push_back(
             {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kRailA});
         f.nodes[1].forward_policy = "DROP";
       }},
      {"docker-forward", "RingNodeWithARuleOfNft",
       [](spec::Survey& f) {
         f.nodes[0].machine->routes.push_back(
             {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kRailA});
         f.nodes[1].forward_drop = "chain f of table inet x: drop";
       },
       "spark-2", "nft forward"},
      {"ring-path", "ARouteIsGone",
       [](spec::Survey& f) {
         const Ipv4 far = made_address(101, 2).address;  // of a node that is there: who owns it does not matter
         f.nodes[0].far = {{.peer = "spark-2", .address = far, .reached = true, .routed = true, .routes = {kRailA}},
                           {.peer = "spark-2", .address = far, .reached = false, .routed = false}};
       },
       "spark-1", "ring"},
  };
}

inline std::vector<RuleCase> device_cases() {
  return {
      {"rdma-down", "PortInitializing", [](spec::Survey& f) { rdma_of(f, 1, "roceP2p1s0f0").state = "INIT"; },
       "spark-2", "roceP2p1s0f0"},
      {"gid-empty", "NoEntries",
       [](spec::Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids.clear();
         rdma_of(f, 1, "roceP2p1s0f0").gid_index.reset();
       },
       "spark-2", "roceP2p1s0f0"},
      {"gid-link-local", "OnlyLinkLocal",
       [](spec::Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids.resize(2);
         rdma_of(f, 1, "roceP2p1s0f0").gid_index.reset();
       },
       "spark-2", "roceP2p1s0f0"},
      {"gid-roce-v1", "OnlyV1",
       [](spec::Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids.resize(3);
         rdma_of(f, 1, "roceP2p1s0f0").gid_index.reset();
       },
       "spark-2", "roceP2p1s0f0"},
      {"gid-pinned", "DriftedAwayFromThePin",
       [](spec::Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids[3].index = 4;
         rdma_of(f, 1, "roceP2p1s0f0").gid_index = 4;
         set(f, "NCCL_IB_GID_INDEX", "3");
       },
       "spark-2", "NCCL_IB_GID_INDEX"},
      {"pin-empty", "GidIndex", [](spec::Survey& f) { set(f, "NCCL_IB_GID_INDEX", ""); }},
      {"pin-empty", "SocketInterface", [](spec::Survey& f) { set(f, "GLOO_SOCKET_IFNAME", " "); }},
      {"pin-absent", "Hca", [](spec::Survey& f) { set(f, "NCCL_IB_HCA", "=mlx5_0,rocep1s0f0,roceP2p1s0f0"); }},
      {"pin-absent", "Network", [](spec::Survey& f) { set(f, "OMPI_MCA_btl_tcp_if_include", "10.99.0.0/16"); }},
      {"pin-absent", "Interface", [](spec::Survey& f) { set(f, "GLOO_SOCKET_IFNAME", "eth0"); }},
      {"pin-no-rdma", "Disabled", [](spec::Survey& f) { set(f, "NCCL_IB_DISABLE", "1"); }, "spark-2",
       "NCCL_IB_DISABLE"},
      {"pin-no-rdma", "Socket", [](spec::Survey& f) { set(f, "NCCL_NET", "Socket"); }, "spark-2", "NCCL_NET"},
      {"pin-no-rdma", "EveryDeviceExcluded", [](spec::Survey& f) { set(f, "NCCL_IB_HCA", "^roce"); }},
      {"pin-no-rdma", "AccountsForASlowAllReduce",
       [](spec::Survey& f) {
         set(f, "NCCL_IB_DISABLE", "1");
         ensure_measured(f);
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{3e9};
       }},
      {"pin-unusable", "TheOtherPortsDevices",
       [](spec::Survey& f) { set(f, "NCCL_IB_HCA", "rocep1s0f1,roceP2p1s0f1"); }, "spark-2", "NCCL_IB_HCA"},
      {"pin-unusable", "CabledPortExcluded",
       [](spec::Survey& f) { set(f, "NCCL_IB_HCA", "^=rocep1s0f0,roceP2p1s0f0"); }},
      {"pin-unusable", "ThePlaybooksPortWithTheCableInTheOther",
       [](spec::Survey& f) { set(f, "NCCL_SOCKET_IFNAME", "enp1s0f1np1"); }, "spark-2", "NCCL_SOCKET_IFNAME"},
      {"pin-unusable", "DockersBridge",
       [](spec::Survey& f) {
         spec::NetworkInterface bridge{.name = "docker0", .kind = spec::InterfaceKind::kBridge, .mac = "", .up = true};
         bridge.carrier = true;
         bridge.addresses = {*parse_ipv4_prefix("172.17.0.1/16")};
         f.nodes[1].machine->interfaces.push_back(bridge);
         set(f, "GLOO_SOCKET_IFNAME", "docker0");
       }},
      {"pin-unusable", "WithoutAnAddress",
       [](spec::Survey& f) {
         interface_of(f, 1, "enp1s0f1np1").up = interface_of(f, 1, "enp1s0f1np1").carrier = true;
         f.cluster->nodes[1].unused = {{"enp1s0f1np1", "leads elsewhere"}, {"enP2p1s0f1np1", "leads elsewhere"}};
         set(f, "OMPI_MCA_btl_tcp_if_include", "enp1s0f1np1");
       }},
      {"pin-one-rail", "SecondRailExcluded", [](spec::Survey& f) { set(f, "NCCL_IB_HCA", "^roceP2p1s0f0"); }},
      {"pin-one-rail", "FirstRailOnly", [](spec::Survey& f) { set(f, "NCCL_IB_HCA", "=rocep1s0f0"); }},
      {"pin-wide", "PrefixOfFastAndManagement", [](spec::Survey& f) { set(f, "NCCL_SOCKET_IFNAME", "en"); }},
      {"pin-wide", "PrefixOfNumberedDevices",
       [](spec::Survey& f) {
         for (const char* name : {"mlx5_1", "mlx5_10"}) {
           f.nodes[1].machine->rdma_devices.push_back({.name = name, .state = "DOWN"});
         }
         set(f, "NCCL_IB_HCA", "roce,mlx5_1");
       }},
      {"rail-losses", "BothRailsOfAPortShowTheSameDiscards",
       [](spec::Survey& f) {
         if (f.nodes[0].name != "spark-1") f = made_pair();  // joined to a case of servers
         for (const char* rail : {kRailA, kRailB}) {
           spec::NetworkInterface& interface = interface_of(f, 1, rail);
           interface.discards_received = 70'000;
           rdma_of(f, 1, *interface.rdma_device).counters = {{"port_rcv_packets", 4'000'000'000}};
         }
       },
       "spark-2", kRailA},
      {"pcie-narrow", "TwoLanesOfFour",
       [](spec::Survey& f) {
         interface_of(f, 1, kRailB).pcie = spec::PcieLink{32, 2, 32, 4};
       },
       "spark-2", kRailB},
      {"gpu-pcie-narrow", "EightLanesOfSixteen",
       [](spec::Survey& f) {
         f.nodes[1].machine->gpus[0].pcie = spec::PcieLink{32, 8, 32, 16};
       },
       "spark-2", "GPU 0"},
      {"port-slow", "HundredGigabit",
       [](spec::Survey& f) {
         for (const char* device : {"rocep1s0f0", "roceP2p1s0f0"}) rdma_of(f, 1, device).rate = BitsPerSecond{100e9};
       }},
      {"nic-far", "ThirdGpuWithoutNic",
       [](spec::Survey& f) {
         make_three_gpus(f, {{"X", "NV18", "NV18", "PIX", "NODE"},
                             {"NV18", "X", "NV18", "NODE", "PXB"},
                             {"NV18", "NV18", "X", "SYS", "NODE"},
                             {"PIX", "NODE", "SYS", "X", "NODE"},
                             {"NODE", "PXB", "NODE", "NODE", "X"}});
       },
       "spark-2", "GPU2"},
      {"gpu-off-nvlink", "ThirdGpuByPcieOnly",
       [](spec::Survey& f) {
         make_three_gpus(f, {{"X", "NV18", "NODE", "PIX", "NODE"},
                             {"NV18", "X", "NODE", "NODE", "PXB"},
                             {"NODE", "NODE", "X", "PIX", "NODE"},
                             {"PIX", "NODE", "PIX", "X", "NODE"},
                             {"NODE", "PXB", "NODE", "NODE", "X"}});
       },
       "spark-2", "GPU2"},
      {"gpu-dead", "NotShownByNvml", [](spec::Survey& f) { f.nodes[1].machine->gpus[0].index.reset(); }},
      {"gpu-stuck", "BusyAtLowClock",
       [](spec::Survey& f) {
         spec::Gpu& gpu = f.nodes[1].machine->gpus[0];
         gpu.utilization_percent = 96;
         gpu.clock_mhz = 850;
         gpu.power_w = 14;
       }},
  };
}

}  // namespace yoke::check
