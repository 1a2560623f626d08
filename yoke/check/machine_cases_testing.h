// Cases of the rules about machines, links and rates: two healthy Sparks (facts_testing.h) and what breaks them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/check/facts_testing.h"

namespace yoke {

using Break = std::function<void(Survey&)>;

struct RuleCase {
  const char* rule;
  const char* name;
  Break break_it;
  const char* node = "spark-2";  // empty: the whole cluster
  const char* subject = nullptr;
};

inline void set(Survey& facts, std::string name, std::string value) {
  facts.nodes[1].machine->settings.push_back({std::move(name), std::move(value), "/etc/nccl.conf"});
}

inline void fail(Survey& facts, NodeFailureKind kind) {
  facts.nodes[1].machine.reset();
  facts.nodes[1].paths.clear();
  facts.nodes[1].failure = NodeFailure{kind, "no", "do"};
  // What a machine that is off does to the other's link.
  for (const char* half : {kHalfA, kHalfB}) interface_of(facts, 0, half).carrier = false;
}

// As healthy, unless another case has measured something already: cases can be joined.
inline void ensure_measured(Survey& facts) {
  if (!facts.measurement) facts.measurement = made_measurement();
}

inline void measure(Survey& facts, const std::function<void(HalfMeasurement&)>& change, bool half_b_only = true) {
  ensure_measured(facts);
  for (HalfMeasurement& half : facts.measurement->halves) {
    if (!half_b_only || half.from_interface == kHalfB) change(half);
  }
}

inline void make_three_gpus(Survey& facts, std::vector<std::vector<std::string>> paths) {
  facts.nodes[1].machine->topology = DeviceTopology{{"GPU0", "GPU1", "GPU2", "mlx5_0", "mlx5_1"}, std::move(paths)};
}

inline std::vector<RuleCase> link_cases() {
  return {
      {"ssh-asks", "Asks", [](Survey& f) { fail(f, NodeFailureKind::kAsks); }},
      {"node-unreachable", "Off", [](Survey& f) { fail(f, NodeFailureKind::kUnreachable); }},
      {"node-unread", "Unread", [](Survey& f) { fail(f, NodeFailureKind::kOther); }},
      {"node-twice", "OneAddressForBoth", [](Survey& f) { f.nodes[1].machine = f.nodes[0].machine; }},
      {"nodes-swapped", "TheOtherWasNotSeen",
       [](Survey& f) {
         f.nodes[0] = {.name = "spark-1"};
         f.nodes[1].machine = made_spark(1);
       }},
      {"address-wifi", "Wifi", [](Survey& f) { interface_of(f, 1, "enP7s7").kind = InterfaceKind::kWifi; }},
      {"address-bridge", "Docker",
       [](Survey& f) {
         f.cluster->nodes[1].address = "172.17.0.1";
         NetworkInterface bridge{.name = "docker0", .kind = InterfaceKind::kBridge, .mac = ""};
         bridge.addresses = {*parse_ipv4_prefix("172.17.0.1/16")};
         f.nodes[1].machine->interfaces.push_back(bridge);
       }},
      {"name-wrong", "Elsewhere", [](Survey& f) { f.nodes[0].names[0].addresses = {*parse_ipv4("10.9.9.9")}; },
       "spark-1", "spark-2"},
      {"name-wrong", "Loopback", [](Survey& f) { f.nodes[0].names[0].addresses = {*parse_ipv4("127.0.1.1")}; },
       "spark-1", "spark-2"},
      {"interface-missing", "Renamed", [](Survey& f) { f.cluster->nodes[1].halves[1].interface = "eth9"; }, "spark-2",
       "eth9"},
      {"port-down", "CablePulledHere",
       [](Survey& f) {
         for (const char* half : {kHalfA, kHalfB}) {
           interface_of(f, 1, half).up = interface_of(f, 1, half).carrier = false;
           interface_of(f, 0, half).carrier = false;
         }
       },
       "spark-2", "port 0"},
      {"port-down", "NoCarrierAtBothEndsIsToldOnce",
       [](Survey& f) {
         for (const std::size_t node : {0U, 1U}) {
           for (const char* half : {kHalfA, kHalfB}) interface_of(f, node, half).carrier = false;
         }
       },
       "spark-1"},
      {"half-down", "HalfSwitchedOff",
       [](Survey& f) {
         interface_of(f, 1, kHalfB).up = interface_of(f, 1, kHalfB).carrier = false;
         interface_of(f, 0, kHalfB).carrier = false;
       },
       "spark-2", kHalfB},
      {"half-unaddressed", "NoAddress", [](Survey& f) { interface_of(f, 1, kHalfB).addresses.clear(); }, "spark-2",
       kHalfB},
      {"address-differs", "OtherHost",
       [](Survey& f) {
         interface_of(f, 1, kHalfA).addresses = {made_address(100, 77)};
         for (GidEntry& gid : rdma_of(f, 1, "rocep1s0f0").gids) {
           if (gid.ipv4) gid.ipv4 = made_address(100, 77).address;
         }
       },
       "spark-2", kHalfA},
      {"address-twice", "ThePeersAddressToo",
       [](Survey& f) {
         interface_of(f, 1, kHalfB).addresses.push_back(made_address(101, 1));
         f.nodes[0].paths[1].small = f.nodes[0].paths[1].large = f.nodes[0].paths[1].connects = false;
       },
       "spark-2", kHalfB},
      {"address-twice", "OnTheManagementPortOfThePeer",
       [](Survey& f) { interface_of(f, 1, "enP7s7").addresses.push_back(made_address(101, 1)); }, "spark-2", "enP7s7"},
      {"prefix-differs", "AHost", [](Survey& f) { interface_of(f, 1, kHalfB).addresses[0].length = 32; }, "spark-2",
       kHalfB},
      {"prefix-differs", "AllOf192168", [](Survey& f) { interface_of(f, 1, kHalfA).addresses[0].length = 16; },
       "spark-2", kHalfA},
      {"prefix-differs", "WithoutAClusterFile",
       [](Survey& f) {
         f.cluster.reset();
         interface_of(f, 1, kHalfB).addresses[0].length = 25;
       },
       "spark-2", kHalfB},
      {"subnet-differs", "OtherNetwork",
       [](Survey& f) {
         interface_of(f, 1, kHalfB).addresses = {made_address(55, 2)};
         for (GidEntry& gid : rdma_of(f, 1, "roceP2p1s0f0").gids) {
           if (gid.ipv4) gid.ipv4 = made_address(55, 2).address;
         }
       },
       "spark-2", kHalfB},
      {"subnet-shared", "OneNetwork",
       [](Survey& f) {
         interface_of(f, 1, kHalfB).addresses = {made_address(100, 102)};
         for (GidEntry& gid : rdma_of(f, 1, "roceP2p1s0f0").gids) {
           if (gid.ipv4) gid.ipv4 = made_address(100, 102).address;
         }
       },
       "spark-2", kHalfB},
      {"subnet-shared", "WithTheManagementPort",
       [](Survey& f) { interface_of(f, 1, "enP7s7").addresses.push_back(made_address(101, 77)); }, "spark-2", "enP7s7"},
      {"mtu-differs", "OneEnd", [](Survey& f) { interface_of(f, 1, kHalfB).mtu = 1500; }, "spark-2", kHalfB},
      {"mtu-small", "BothEndsOfBothHalves",
       [](Survey& f) {
         f.nodes.pop_back();  // one machine, so that one is told
         f.nodes[0].paths.clear();
         for (const char* half : {kHalfA, kHalfB}) interface_of(f, 0, half).mtu = 1500;
       },
       "spark-1"},
      {"jumbo-blocked", "SwitchInBetween",
       [](Survey& f) { f.nodes[0].paths[1].large = f.nodes[1].paths[1].large = false; }, "spark-1", kHalfB},
      {"route-elsewhere", "HostRoutes",
       [](Survey& f) {
         auto& routes = f.nodes[1].machine->routes;
         routes.insert(routes.begin(), {.destination = Ipv4Prefix{made_address(100, 1).address, 32},
                                        .gateway = made_address(1, 21).address,
                                        .interface = "enP7s7"});
         f.nodes[0].paths[0].small = f.nodes[0].paths[0].large = false;  // its answers come by another way
       },
       "spark-2", "enP7s7"},
      {"route-elsewhere", "ByTheOtherHalf",
       [](Survey& f) {
         f.nodes[1].paths[0].routed = true;
         f.nodes[1].paths[0].routes = {kHalfB};
         f.nodes[0].paths[0].small = f.nodes[0].paths[0].large = f.nodes[0].paths[0].connects = false;
       },
       "spark-2", kHalfB},
      {"route-elsewhere", "ByBothHalves",
       [](Survey& f) {
         f.nodes[1].paths[0].routed = true;
         f.nodes[1].paths[0].routes = {kHalfA, kHalfB};
       },
       "spark-2", kHalfB},
      {"route-missing", "NoneOrABlackHole",
       [](Survey& f) {
         f.nodes[1].paths[1].routed = false;
         f.nodes[0].paths[1].small = f.nodes[0].paths[1].large = f.nodes[0].paths[1].connects = false;
       },
       "spark-2", kHalfB},
      {"half-silent", "NoAnswer",
       [](Survey& f) {
         for (SurveyedNode& node : f.nodes) {
           node.paths[1].small = node.paths[1].large = node.paths[1].connects = false;
         }
       },
       "spark-1", kHalfB},
      {"firewall", "SwallowsConnections",
       [](Survey& f) { f.nodes[0].paths[0].connects = f.nodes[0].paths[1].connects = false; }},
      {"firewall", "OfTheCallerWhereOnlyItDropsPackets",
       [](Survey& f) {
         f.nodes[0].drops_packets = false;
         f.nodes[1].drops_packets = true;
         f.nodes[1].paths[1].connects = false;
       },
       "spark-2", kHalfB},
      {"forwarding-off", "RingNode",
       [](Survey& f) {
         f.nodes[0].machine->routes.push_back(
             {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kHalfA});
         f.nodes[1].machine->ip_forward = false;
       }},
      {"docker-forward", "RingNodeWithDocker",
       [](Survey& f) {
         f.nodes[0].machine->routes.push_back(
             {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kHalfA});
         f.nodes[1].forward_policy = "DROP";
       }},
      {"docker-forward", "RingNodeWithARuleOfNft",
       [](Survey& f) {
         f.nodes[0].machine->routes.push_back(
             {.destination = made_address(120, 0), .gateway = made_address(100, 2).address, .interface = kHalfA});
         f.nodes[1].forward_drop = "chain f of table inet x: drop";
       },
       "spark-2", "nft forward"},
      {"ring-path", "ARouteIsGone",
       [](Survey& f) {
         const Ipv4 far = made_address(101, 2).address;  // of a node that is there: who owns it does not matter
         f.nodes[0].far = {{.peer = "spark-2", .address = far, .reached = true, .routed = true, .routes = {kHalfA}},
                           {.peer = "spark-2", .address = far, .reached = false, .routed = false}};
       },
       "spark-1", "ring"},
  };
}

inline std::vector<RuleCase> device_cases() {
  return {
      {"rdma-down", "PortInitializing", [](Survey& f) { rdma_of(f, 1, "roceP2p1s0f0").state = "INIT"; }, "spark-2",
       "roceP2p1s0f0"},
      {"gid-empty", "NoEntries",
       [](Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids.clear();
         rdma_of(f, 1, "roceP2p1s0f0").gid_index.reset();
       },
       "spark-2", "roceP2p1s0f0"},
      {"gid-link-local", "OnlyLinkLocal",
       [](Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids.resize(2);
         rdma_of(f, 1, "roceP2p1s0f0").gid_index.reset();
       },
       "spark-2", "roceP2p1s0f0"},
      {"gid-roce-v1", "OnlyV1",
       [](Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids.resize(3);
         rdma_of(f, 1, "roceP2p1s0f0").gid_index.reset();
       },
       "spark-2", "roceP2p1s0f0"},
      {"gid-pinned", "DriftedAwayFromThePin",
       [](Survey& f) {
         rdma_of(f, 1, "roceP2p1s0f0").gids[3].index = 4;
         rdma_of(f, 1, "roceP2p1s0f0").gid_index = 4;
         set(f, "NCCL_IB_GID_INDEX", "3");
       },
       "spark-2", "NCCL_IB_GID_INDEX"},
      {"pin-empty", "GidIndex", [](Survey& f) { set(f, "NCCL_IB_GID_INDEX", ""); }},
      {"pin-empty", "SocketInterface", [](Survey& f) { set(f, "GLOO_SOCKET_IFNAME", " "); }},
      {"pin-absent", "Hca", [](Survey& f) { set(f, "NCCL_IB_HCA", "=mlx5_0,rocep1s0f0,roceP2p1s0f0"); }},
      {"pin-absent", "Network", [](Survey& f) { set(f, "OMPI_MCA_btl_tcp_if_include", "10.99.0.0/16"); }},
      {"pin-absent", "Interface", [](Survey& f) { set(f, "GLOO_SOCKET_IFNAME", "eth0"); }},
      {"pin-no-rdma", "Disabled", [](Survey& f) { set(f, "NCCL_IB_DISABLE", "1"); }, "spark-2", "NCCL_IB_DISABLE"},
      {"pin-no-rdma", "Socket", [](Survey& f) { set(f, "NCCL_NET", "Socket"); }, "spark-2", "NCCL_NET"},
      {"pin-no-rdma", "EveryDeviceExcluded", [](Survey& f) { set(f, "NCCL_IB_HCA", "^roce"); }},
      {"pin-no-rdma", "AccountsForASlowAllReduce",
       [](Survey& f) {
         set(f, "NCCL_IB_DISABLE", "1");
         ensure_measured(f);
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{3e9};
       }},
      {"pin-unusable", "TheOtherPortsDevices", [](Survey& f) { set(f, "NCCL_IB_HCA", "rocep1s0f1,roceP2p1s0f1"); },
       "spark-2", "NCCL_IB_HCA"},
      {"pin-unusable", "CabledPortExcluded", [](Survey& f) { set(f, "NCCL_IB_HCA", "^=rocep1s0f0,roceP2p1s0f0"); }},
      {"pin-unusable", "ThePlaybooksPortWithTheCableInTheOther",
       [](Survey& f) { set(f, "NCCL_SOCKET_IFNAME", "enp1s0f1np1"); }, "spark-2", "NCCL_SOCKET_IFNAME"},
      {"pin-unusable", "DockersBridge",
       [](Survey& f) {
         NetworkInterface bridge{.name = "docker0", .kind = InterfaceKind::kBridge, .mac = "", .up = true};
         bridge.carrier = true;
         bridge.addresses = {*parse_ipv4_prefix("172.17.0.1/16")};
         f.nodes[1].machine->interfaces.push_back(bridge);
         set(f, "GLOO_SOCKET_IFNAME", "docker0");
       }},
      {"pin-unusable", "WithoutAnAddress",
       [](Survey& f) {
         interface_of(f, 1, "enp1s0f1np1").up = interface_of(f, 1, "enp1s0f1np1").carrier = true;
         set(f, "OMPI_MCA_btl_tcp_if_include", "enp1s0f1np1");
       }},
      {"pin-one-half", "SecondHalfExcluded", [](Survey& f) { set(f, "NCCL_IB_HCA", "^roceP2p1s0f0"); }},
      {"pin-one-half", "FirstHalfOnly", [](Survey& f) { set(f, "NCCL_IB_HCA", "=rocep1s0f0"); }},
      {"pin-wide", "PrefixOfFastAndManagement", [](Survey& f) { set(f, "NCCL_SOCKET_IFNAME", "en"); }},
      {"pin-wide", "PrefixOfNumberedDevices",
       [](Survey& f) {
         for (const char* name : {"mlx5_1", "mlx5_10"}) {
           f.nodes[1].machine->rdma_devices.push_back({.name = name, .state = "DOWN"});
         }
         set(f, "NCCL_IB_HCA", "roce,mlx5_1");
       }},
      {"pcie-narrow", "TwoLanesOfFour",
       [](Survey& f) {
         interface_of(f, 1, kHalfB).pcie = PcieLink{32, 2, 32, 4};
       },
       "spark-2", kHalfB},
      {"gpu-pcie-narrow", "EightLanesOfSixteen",
       [](Survey& f) {
         f.nodes[1].machine->gpus[0].pcie = PcieLink{32, 8, 32, 16};
       },
       "spark-2", "GPU 0"},
      {"port-slow", "HundredGigabit",
       [](Survey& f) {
         for (const char* device : {"rocep1s0f0", "roceP2p1s0f0"}) rdma_of(f, 1, device).rate = BitsPerSecond{100e9};
       }},
      {"nic-far", "ThirdGpuWithoutNic",
       [](Survey& f) {
         make_three_gpus(f, {{"X", "NV18", "NV18", "PIX", "NODE"},
                             {"NV18", "X", "NV18", "NODE", "PXB"},
                             {"NV18", "NV18", "X", "SYS", "NODE"},
                             {"PIX", "NODE", "SYS", "X", "NODE"},
                             {"NODE", "PXB", "NODE", "NODE", "X"}});
       },
       "spark-2", "GPU2"},
      {"gpu-off-nvlink", "ThirdGpuByPcieOnly",
       [](Survey& f) {
         make_three_gpus(f, {{"X", "NV18", "NODE", "PIX", "NODE"},
                             {"NV18", "X", "NODE", "NODE", "PXB"},
                             {"NODE", "NODE", "X", "PIX", "NODE"},
                             {"PIX", "NODE", "PIX", "X", "NODE"},
                             {"NODE", "PXB", "NODE", "NODE", "X"}});
       },
       "spark-2", "GPU2"},
      {"gpu-dead", "NotShownByNvml", [](Survey& f) { f.nodes[1].machine->gpus[0].index.reset(); }},
      {"gpu-stuck", "BusyAtLowClock",
       [](Survey& f) {
         Gpu& gpu = f.nodes[1].machine->gpus[0];
         gpu.utilization_percent = 96;
         gpu.clock_mhz = 850;
         gpu.power_w = 14;
       }},
  };
}

inline std::vector<RuleCase> software_cases() {
  return {
      {"half-dead", "NothingPasses",
       [](Survey& f) {
         measure(f, [](HalfMeasurement& half) {
           half.alone = half.together = half.both_ways = {};
           half.failure = "no connection within 5 s";
         });
       },
       "spark-1", kHalfB},
      {"half-lossy", "OneWay",
       [](Survey& f) {
         measure(f, [](HalfMeasurement& half) {
           half.messages = 6300;
           half.resent = half.from == "spark-2" ? 31 : 2;
           half.alone = half.together = half.both_ways = BitsPerSecond{20e9};
         });
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{1e9};
       },
       "spark-2", kHalfB},
      {"half-late", "AMillisecond",
       [](Survey& f) {
         measure(f, [](HalfMeasurement& half) {
           half.latency = Seconds{1e-3};
           half.alone = half.together = half.both_ways = BitsPerSecond{20e9};
         });
       },
       "spark-1", kHalfB},
      {"rail-unstable", "SlowEveryOtherTime",
       [](Survey& f) {
         measure(f, [](HalfMeasurement& half) {
           half.alone = BitsPerSecond{52e9};
           half.alone_again = BitsPerSecond{96e9};
         });
       },
       "spark-1", kHalfB},
      {"rail-unstable", "Collective",
       [](Survey& f) {
         ensure_measured(f);
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{5e9};
         f.measurement->all_reduce->large_bus_bandwidth_again = BytesPerSecond{20e9};
       },
       ""},
      {"half-idle", "BesideTheOther",
       [](Survey& f) { measure(f, [](HalfMeasurement& half) { half.together = BitsPerSecond{1e9}; }); }, "spark-1",
       kHalfB},
      {"half-degraded", "ThirteenGigabit",
       [](Survey& f) {
         measure(f, [](HalfMeasurement& half) { half.alone = half.together = half.both_ways = BitsPerSecond{13.1e9}; });
       },
       "spark-1", kHalfB},
      {"half-slow", "SixtyPercent",
       [](Survey& f) {
         measure(f, [](HalfMeasurement& half) { half.alone = half.together = half.both_ways = BitsPerSecond{60e9}; });
       },
       "spark-1", kHalfB},
      {"halves-share", "OnePathForBoth",
       [](Survey& f) {
         measure(
             f,
             [](HalfMeasurement& half) {
               // Only what spark-2 sends: one node, one finding.
               if (half.from == "spark-2") half.together = BitsPerSecond{50e9};
             },
             false);
       }},
      {"collective-failed", "NoResult",
       [](Survey& f) {
         ensure_measured(f);
         f.measurement->all_reduce.reset();
         f.measurement->all_reduce_failure = "rank 1 was lost";
       },
       ""},
      {"collective-slow", "ThreeGigabytes",
       [](Survey& f) {
         ensure_measured(f);
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{3e9};
       },
       ""},
      {"errors-counted", "Symbols",
       [](Survey& f) {
         ensure_measured(f);
         f.measurement->counters = {{"spark-2", kHalfA, "rx_errors", 7}, {"spark-2", kHalfA, "rx_dropped", 9}};
       },
       "spark-2", kHalfA},
      {"nccl-architecture", "OnlyHopper",
       [](Survey& f) {
         for (SurveyedNode& node : f.nodes) {
           node.machine->nccl.push_back(node.machine->nccl[0]);
         }
         f.nodes[1].machine->nccl[1].architectures = {"sm_90", "sm_100"};
         f.nodes[1].machine->nccl[1].ptx.clear();
       }},
      {"nccl-bad-build", "FromPip",
       [](Survey& f) {
         f.nodes.erase(f.nodes.begin());
         f.nodes[0].paths.clear();
         f.nodes[0].machine->nccl[0].build_id = "a7f420a1beef";
       }},
      {"nccl-no-ring", "RingBefore2307",
       [](Survey& f) {
         f.cluster->fabric->topology = Topology::kRing;
         f.nodes[0].machine->nccl[0].version = f.nodes[1].machine->nccl[0].version = "2.30.7";
         f.nodes[1].machine->nccl[0].version = "2.30.4";
         f.nodes[0].machine->nccl.clear();
       }},
      {"nccl-differs", "OtherBuild", [](Survey& f) { f.nodes[1].machine->nccl[0].build_id = "0123456789"; }},
      {"kernel-no-cma", "Kernel7",
       [](Survey& f) {
         for (SurveyedNode& node : f.nodes) node.machine->kernel = "7.0.0-31-generic";
         f.nodes[0].machine->memory.cma_total = f.nodes[0].machine->memory.cma_free = Bytes{0};  // cured by kho=off
         f.nodes[1].machine->memory.cma_total = Bytes{0};
       }},
      {"kernel-differs", "OneUpdated", [](Survey& f) { f.nodes[1].machine->kernel = "6.17.0-1004-nvidia"; }, ""},
      {"driver-differs", "OneUpdated", [](Survey& f) { f.nodes[1].machine->driver = "580.142"; }, ""},
      {"clock-skew", "Behind", [](Survey& f) { f.nodes[1].clock_ahead = Seconds{-40}; }},
      {"container-no-rdma", "NoDevices", [](Survey& f) { f.nodes[1].machine->containers.inside = "docker"; }},
      {"memlock-low", "EightMebibytes",
       [](Survey& f) {
         f.nodes[1].machine->memlock_unlimited = false;
         f.nodes[1].machine->memlock = Bytes{8 << 20};
       }},
      {"memory-low", "ThreeGibibytes", [](Survey& f) { f.nodes[1].machine->memory.available = Bytes{3LL << 30}; }},
      {"swap-used", "NineGibibytes", [](Survey& f) { f.nodes[1].machine->memory.swap_free = Bytes{7LL << 30}; }},
      {"page-cache-held", "ModelJustCopied", [](Survey& f) { f.nodes[1].machine->memory.cached = Bytes{90LL << 30}; }},
  };
}

}  // namespace yoke
