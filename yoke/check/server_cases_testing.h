// Two healthy servers with eight B300 each, and the cases of the rules about servers: what breaks one of them.
#pragma once
#include <string>
#include <vector>

#include "yoke/check/log_cases_testing.h"
#include "yoke/check/machine_cases_testing.h"

namespace yoke::check {

inline spec::Gpu made_b300_gpu(int index) {
  spec::Gpu gpu{.index = index, .name = "NVIDIA B300 SXM6 AC"};
  gpu.pci_address = fmt::format("0000:{:02x}:00.0", 0x20 + index);
  gpu.compute_capability = "10.3";
  gpu.memory = Bytes{288400343040};
  gpu.memory_free = Bytes{287762808832};
  gpu.pcie = spec::PcieLink{64, 16, 64, 16};
  gpu.persistence = true;
  gpu.clock_mhz = 345;
  gpu.clock_mhz_max = 2032;
  gpu.power_w = 188;
  gpu.power_limit_w = gpu.power_limit_default_w = 1100;
  gpu.temperature_c = 33;
  gpu.utilization_percent = 0;
  gpu.nvlinks = gpu.nvlinks_active = 18;
  gpu.nvlink_errors = gpu.nvlink_errors_rising = gpu.nvlink_recoveries = 0;
  gpu.fabric_state = "completed";
  gpu.ecc_uncorrected = gpu.ecc_uncorrected_total = 0;
  gpu.row_remap_pending = gpu.row_remap_failed = false;
  gpu.iommu = "identity";
  return gpu;
}

inline spec::DeviceTopology made_b300_topology() {
  spec::DeviceTopology topology;
  for (int i = 0; i < 8; ++i) topology.devices.push_back(fmt::format("GPU{}", i));
  for (int i = 0; i < 8; ++i) topology.devices.push_back(fmt::format("mlx5_{}", i));
  for (std::size_t i = 0; i < 16; ++i) {
    std::vector<std::string>& row = topology.paths.emplace_back();
    for (std::size_t j = 0; j < 16; ++j) {
      const bool gpus = i < 8 && j < 8;
      row.push_back(i == j                       ? "X"
                    : gpus                       ? "NV18"
                    : i % 8 == j % 8             ? "PXB"
                    : (i % 8 < 4) == (j % 8 < 4) ? "NODE"
                                                 : "SYS");
    }
  }
  return topology;
}

inline spec::Machine made_b300(int number) {
  spec::Machine machine{.hostname = fmt::format("b300-{}", number), .architecture = "x86_64", .os = "Ubuntu 24.04"};
  machine.kernel = "6.8.0-71-generic";
  machine.vendor = "Dell Inc.";
  machine.product = "PowerEdge XE9780";
  machine.driver = "580.95.05";
  machine.cuda = "13.0";
  machine.open_driver = true;
  machine.modules = {"nvidia", "nvidia_uvm", "nvidia_peermem", "mlx5_core", "mlx5_ib"};
  machine.fabric_manager = spec::FabricManager{.installed = true, .running = true, .version = "580.95.05"};
  machine.memory = {.total = Bytes{2015LL << 30}, .available = Bytes{1980LL << 30}};
  machine.memlock_unlimited = true;
  spec::NetworkInterface management{
      .name = "eno8303", .kind = spec::InterfaceKind::kEthernet, .mac = "", .mtu = 1500, .up = true};
  management.carrier = true;
  management.addresses = {made_address(1, 20 + number)};
  machine.interfaces = {management};
  for (int i = 0; i < 8; ++i) {
    machine.gpus.push_back(made_b300_gpu(i));
    spec::NetworkInterface nic = made_rail("nic", "A", 0, 10 + i, number);
    nic.name = fmt::format("enp{}s0np0", 24 + i);
    nic.mac = fmt::format("c4:70:bd:0b:{:02x}:{:02x}", number, i);
    nic.port = i;
    nic.speed = BitsPerSecond{800e9};
    nic.rdma_device = fmt::format("mlx5_{}", i);
    nic.pci_address = fmt::format("0000:{:02x}:00.0", 0x40 + i);
    nic.pcie = spec::PcieLink{64, 16, 64, 16};
    nic.flow_control = "3";
    nic.dscp = "usual";
    nic.pause_received = 200'000;
    nic.pause_sent = 900;
    nic.discards_received = 12;
    machine.rdma_devices.push_back(made_rdma(nic));
    spec::RdmaDevice& device = machine.rdma_devices.back();
    device.board = "NVD0000000100";
    device.rate = BitsPerSecond{800e9};
    device.iommu = "identity";
    device.bridges = 3;
    device.counters = {{"link_downed", 1}, {"port_xmit_packets", 4000000000}, {"port_rcv_packets", 4000000000}};
    machine.interfaces.push_back(nic);
    machine.routes.push_back({.destination = made_address(10 + i, 0), .gateway = {}, .interface = nic.name});
  }
  machine.topology = made_b300_topology();
  return machine;
}

inline spec::Survey made_racks() {
  spec::Survey facts;
  for (const int number : {1, 2}) {
    facts.nodes.push_back({.name = fmt::format("b300-{}", number), .machine = made_b300(number)});
  }
  return facts;
}

// In the place of the two Sparks, unless another case has put them there already: cases can be joined.
inline void ensure_racks(spec::Survey& facts) {
  if (facts.nodes.empty() || facts.nodes[0].name != "b300-1") facts = made_racks();
}

// Breaks GPU 5 of the second.
inline Break on_gpu(std::function<void(spec::Gpu&)> change) {
  return [change = std::move(change)](spec::Survey& facts) {
    ensure_racks(facts);
    change(facts.nodes[1].machine->gpus[5]);
  };
}

inline Break on_server(std::function<void(spec::Machine&)> change) {
  return [change = std::move(change)](spec::Survey& facts) {
    ensure_racks(facts);
    change(*facts.nodes[1].machine);
  };
}

inline void work_at(spec::Gpu& gpu, int mhz, double watts, int celsius, std::vector<std::string> limits) {
  gpu.utilization_percent = 97;
  gpu.clock_mhz = mhz;
  gpu.power_w = watts;
  gpu.temperature_c = celsius;
  gpu.clock_limits = std::move(limits);
}

inline std::vector<RuleCase> gpu_cases() {
  constexpr const char* kNode = "b300-2";
  return {
      {"gpu-missing", "SevenOnTheBus", on_server([](spec::Machine& m) {
         m.gpus.pop_back();
         m.topology.reset();
       }),
       kNode, "GPU"},
      {"gpu-missing", "AnotherOfTheSameProductHasMore",
       [](spec::Survey& f) {
         ensure_racks(f);
         for (spec::SurveyedNode& node : f.nodes) node.machine->product = "AS-8125GS-TNHR";
         f.nodes[1].machine->gpus.resize(6);
         f.nodes[1].machine->topology.reset();
       },
       kNode, "GPU"},
      {"gpu-throttled", "HotAt600MHz", on_gpu([](spec::Gpu& g) { work_at(g, 600, 300, 92, {"thermal"}); }), kNode,
       "GPU 5"},
      {"gpu-throttled", "NvmlDoesNotTellWhy", on_gpu([](spec::Gpu& g) { work_at(g, 600, 500, 92, {}); }), kNode},
      {"gpu-throttled", "PowerBrake", on_gpu([](spec::Gpu& g) { g.clock_limits = {"power brake"}; }), kNode},
      {"gpu-clock-locked", "ByNvidiaSmi", on_gpu([](spec::Gpu& g) { work_at(g, 900, 320, 50, {"clock setting"}); }),
       kNode, "GPU 5"},
      {"gpu-power-limit", "Lowered", on_gpu([](spec::Gpu& g) { g.power_limit_w = 700; }), kNode, "GPU 5"},
      {"gpu-memory-held", "ByAProcessOnThisGpuAlone", on_gpu([](spec::Gpu& g) {
         g.memory_free = Bytes{40LL << 30};
         g.processes = {{48213, Bytes{228LL << 30}}};
       }),
       kNode, "GPU 5"},
      {"gpu-memory-held", "ByNobodyWhoShows", on_gpu([](spec::Gpu& g) { g.memory_free = Bytes{40LL << 30}; }), kNode},
      {"gpu-ecc", "OneError",
       [](spec::Survey& f) {
         on_gpu([](spec::Gpu& g) { g.ecc_uncorrected = g.ecc_uncorrected_total = 1; })(f);
         f.nodes[1].machine->gpus[5].row_remap_pending = true;  // what follows from it is not told again
         f.nodes[1].machine->xids = {{48, "0000:25:00", "NVRM: Xid (PCI:0000:25:00): 48, DBE"}};
       },
       kNode, "GPU 5"},
      {"row-remap", "Pending", on_gpu([](spec::Gpu& g) { g.row_remap_pending = true; }), kNode, "GPU 5"},
      {"row-remap", "Failed", on_gpu([](spec::Gpu& g) { g.row_remap_failed = true; }), kNode},
      {"gpu-xid", "Gsp", on_server([](spec::Machine& m) {
         m.xids = {{119, "0000:25:00", "NVRM: Xid (PCI:0000:25:00): 119, Timeout after 6s of waiting for RPC"},
                   {31, "0000:24:00", "NVRM: Xid (PCI:0000:24:00): 31, pid=4711, MMU Fault: a program's own"}};
       }),
       kNode, "GPU 5"},
      {"gpu-dead", "FellOffTheBusWithItsXid", on_server([](spec::Machine& m) {
         m.gpus[7].index.reset();
         m.topology.reset();
         m.xids = {{79, "0000:27:00", "NVRM: Xid (PCI:0000:27:00): 79, GPU has fallen off the bus."}};
       }),
       kNode, "GPU"},
      {"gpu-dead", "OfAContainersOwn", on_server([](spec::Machine& m) {
         m.containers.inside = "docker";
         m.containers.rdma_access = {"uverbs0"};
         for (int i = 0; i < 8; ++i) m.containers.gpu_access.push_back(fmt::format("nvidia{}", i));
         m.gpus[7].index.reset();
         m.topology.reset();
       }),
       kNode, "GPU"},
      {"persistence-off", "AllGpus", on_server([](spec::Machine& m) {
         for (spec::Gpu& gpu : m.gpus) gpu.persistence = false;
       }),
       kNode},
  };
}

inline std::vector<RuleCase> nvlink_cases() {
  constexpr const char* kNode = "b300-2";
  return {
      {"nvlink-missing", "SixteenOfEighteen", on_gpu([](spec::Gpu& g) { g.nvlinks_active = 16; }), kNode, "GPU5"},
      {"nvlink-errors", "Rising", on_gpu([](spec::Gpu& g) { g.nvlink_errors = g.nvlink_errors_rising = 12; }), kNode,
       "GPU5"},
      {"nvlink-errors", "TrainedAgain", on_gpu([](spec::Gpu& g) { g.nvlink_recoveries = 2; }), kNode},
      {"fabric-manager", "NotRunning", on_server([](spec::Machine& m) {
         m.fabric_manager->running = false;
         for (spec::Gpu& gpu : m.gpus) gpu.fabric_state = "not started";
         for (spec::Gpu& gpu : m.gpus) gpu.nvlinks_active = 0;
       }),
       kNode},
      {"fabric-manager", "OneGpuWaits", on_gpu([](spec::Gpu& g) { g.fabric_state = "in progress"; }), kNode},
      {"fabric-manager-differs", "AfterAnUpdate",
       on_server([](spec::Machine& m) { m.fabric_manager->version = "580.82.07"; }), kNode},
      {"driver-old", "Branch570",
       [](spec::Survey& f) {
         ensure_racks(f);
         spec::Machine& machine = *f.nodes[1].machine;
         machine.driver = machine.fabric_manager->version = "570.195.03";
         machine.cuda = "12.8";
       },
       kNode},
      {"cuda-old", "Toolkit12", on_server([](spec::Machine& m) { m.cuda_toolkit = "12.4.1"; }), kNode,
       "/usr/local/cuda"},
  };
}

inline std::vector<RuleCase> gpu_network_cases() {
  constexpr const char* kNode = "b300-2";
  return {
      {"acs-redirects", "TwoBridges", on_server([](spec::Machine& m) {
         m.acs_redirects = {"0000:17:00.0", "0000:17:01.0"};
       }),
       kNode, "ACS"},
      {"iommu-translates", "AllDevices", on_server([](spec::Machine& m) {
         for (spec::Gpu& gpu : m.gpus) gpu.iommu = "DMA-FQ";
       }),
       kNode, "IOMMU"},
      {"gpudirect-missing", "NoModuleAndTheClosedDriver", on_server([](spec::Machine& m) {
         std::erase(m.modules, "nvidia_peermem");
         m.open_driver = false;
       }),
       kNode},
      {"gpudirect-missing", "NoModuleAndAnOldKernel",
       [](spec::Survey& f) {
         ensure_racks(f);
         for (spec::SurveyedNode& node : f.nodes) node.machine->kernel = "5.4.0-150-generic";
         std::erase(f.nodes[1].machine->modules, "nvidia_peermem");
       },
       kNode},
      {"pin-some-rails", "OneOfEight", on_server([](spec::Machine& m) {
         m.settings = {{"NCCL_IB_HCA", "=mlx5_0", "/etc/nccl.conf"}};
       }),
       kNode, "NCCL_IB_HCA"},
      {"pin-some-rails", "OneLeftOut", on_server([](spec::Machine& m) {
         m.settings = {{"NCCL_IB_HCA", "^=mlx5_7", "environment"}};
       }),
       kNode},
      {"huge-pages-held", "MostOfTheMemory", on_server([](spec::Machine& m) {
         m.memory.huge_pages = Bytes{1900LL << 30};
         m.memory.available = Bytes{60LL << 30};
       }),
       kNode, "memory"},
      {"flow-control-differs", "OneRail", on_server([](spec::Machine& m) { m.interfaces[3].flow_control = "none"; }),
       kNode, "enp26s0np0"},
      {"flow-control-differs", "OneRailByVlanTag", on_server([](spec::Machine& m) { m.interfaces[3].dscp = "none"; }),
       kNode, "enp26s0np0"},
      {"class-lossy", "AnotherPriority", on_server([](spec::Machine& m) {
         m.settings = {{"NCCL_IB_TC", "160", "/etc/nccl.conf"}};
       }),
       kNode, "NCCL_IB_TC"},
      {"class-lossy", "SortedByVlanTag",
       [](spec::Survey& f) {
         ensure_racks(f);
         for (spec::SurveyedNode& node : f.nodes) {
           for (spec::NetworkInterface& nic : node.machine->interfaces) {
             if (nic.dscp) nic.dscp = "none";
           }
         }
         f.nodes[1].machine->settings = {{"NCCL_IB_TC", "106", "environment"}};
       },
       kNode, "NCCL_IB_TC"},
      {"ecn-ignored", "NoNoticeIsSent", on_server([](spec::Machine& m) {
         m.rdma_devices[2].counters.push_back({"np_ecn_marked_roce_packets", 5000});
       }),
       kNode, "enp26s0np0"},
      {"ecn-ignored", "NoticesAreNotObeyed", on_server([](spec::Machine& m) {
         m.rdma_devices[2].counters.push_back({"rp_cnp_ignored", 5000});
       }),
       kNode, "enp26s0np0"},
      {"rail-losses", "SentAgain", on_server([](spec::Machine& m) {
         m.rdma_devices[2].counters.push_back({"packet_seq_err", 900000});
       }),
       kNode, "enp26s0np0"},
      {"rail-losses", "NoBufferInTheNic",
       on_server([](spec::Machine& m) { m.interfaces[3].discards_received = 70'000; }), kNode, "enp26s0np0"},
      {"rail-pauses", "ASlowReceiver", on_server([](spec::Machine& m) {
         m.interfaces[3].pause_sent = 30'000'000;
         for (std::size_t i = 1; i < m.interfaces.size(); ++i) m.interfaces[i].pause_received = 30'000'000;
       }),
       kNode, "enp26s0np0"},
      {"rail-pauses", "HeldBackByTheSwitch",
       on_server([](spec::Machine& m) { m.interfaces[3].pause_received = 30'000'000; }), kNode, "enp26s0np0"},
      {"rail-flaps", "OneOfEight", on_server([](spec::Machine& m) { m.rdma_devices[6].counters[0].value = 37; }), kNode,
       "enp30s0np0"},
      {"port-slow", "OneCauseForAllEight", on_server([](spec::Machine& m) {
         for (spec::RdmaDevice& device : m.rdma_devices) device.rate = BitsPerSecond{400e9};
       }),
       kNode},
  };
}

// Lines of eight ranks on b300-1, with 16 in the job; `%` stands for the rank.
inline Break rack_says(std::vector<std::string> lines, int ranks = 8) {
  return [lines = std::move(lines), ranks](spec::Survey& facts) {
    if (!facts.log) facts.log = spec::NcclLog{};
    for (int rank = 0; rank < ranks; ++rank) {
      add_nccl_log(*facts.log,
                   fmt::format("b300-1:10:10 [{0}] NCCL INFO comm 0x1 rank {0} nranks 16 cudaDev {0} nvmlDev "
                               "{0} busId 1b000 - Init COMPLETE\n",
                               rank));
    }
    for (const std::string& text : lines) {
      if (text.starts_with('#')) add_nccl_log(*facts.log, text + "\n");
      for (int rank = 0; rank < ranks && !text.starts_with('#'); ++rank) {
        std::string line = text;
        for (std::size_t at = line.find('%'); at != std::string::npos; at = line.find('%')) {
          const bool next = at + 1 < line.size() && line[at + 1] == '+';
          line.replace(at, next ? 2 : 1, std::to_string(next ? (rank + 1) % ranks : rank));
        }
        add_nccl_log(*facts.log, fmt::format("b300-1:10:10 [{}] NCCL {}\n", rank, line));
        if (text.find('%') == std::string::npos) break;
      }
    }
  };
}

// A line for each of 16 ranks, eight on each of two machines; none where it is empty.
inline Break two_servers_say(std::string (*line_of)(int rank)) {
  return [line_of](spec::Survey& facts) {
    if (!facts.log) facts.log = spec::NcclLog{};
    for (int rank = 0; rank < 16; ++rank) {
      const std::string host = fmt::format("b300-{}:10:10 [{}] NCCL ", rank / 8 + 1, rank % 8);
      add_nccl_log(*facts.log, fmt::format("{}INFO comm 0x1 rank {} nranks 16 - Init COMPLETE\n", host, rank));
      if (const std::string line = line_of(rank); !line.empty()) add_nccl_log(*facts.log, host + line + "\n");
    }
  };
}

inline const std::string kEightNics =
    "INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/RoCE [3]mlx5_3:1/RoCE [4]mlx5_4:1/RoCE "
    "[5]mlx5_5:1/RoCE [6]mlx5_6:1/RoCE [7]mlx5_7:1/RoCE [RO]; OOB eno8303:10.0.1.11<0>";
inline const std::string kByRail = "INFO Channel 0%/0 : %[%] -> 1%[%] [send] via NET/IB/%/GDRDMA";
inline const std::string kByNvlink = "INFO Channel 00/0 : %[%] -> %+[%+] via P2P/CUMEM";

inline std::vector<RuleCase> server_log_cases() {
  constexpr const char* kNode = "b300-1";
  return {
      {"nccl-no-p2p", "HostMemory",
       rack_says({kEightNics, kByRail, "INFO Channel 00/0 : %[%] -> %+[%+] via SHM/direct"}), kNode, "SHM"},
      {"nccl-no-p2p", "TheNetwork",
       rack_says({kEightNics, kByRail, "INFO Channel 01/0 : %[%] -> %+[%+] [send] via NET/IB/%/GDRDMA"}), kNode},
      {"nccl-no-nvls", "OnB300",
       rack_says({"INFO NVLS multicast support is not available on dev %", kEightNics, kByRail, kByNvlink,
                  "#  Rank  0 Group  0 Pid   4711 on     b300-1 device  0 [0000:1b:00] NVIDIA B300 SXM6 AC"}),
       kNode},
      {"nccl-no-gpudirect", "ChannelsWithout",
       rack_says({kEightNics, kByNvlink, "INFO Channel 0%/0 : %[%] -> 1%[%] [send] via NET/IB/%"}), kNode},
      {"nccl-few-nics", "OneForEight",
       rack_says({"INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eno8303:10.0.1.11<0>", kByNvlink}), kNode, "mlx5_0"},
      {"nccl-few-nics", "SevenForEight",
       rack_says({kEightNics.substr(0, kEightNics.find("[7]")) + "[RO]; OOB eno8303:10.0.1.11<0>", kByNvlink}), kNode},
      {"nccl-one-nic", "AllChannels",
       rack_says({kEightNics, kByNvlink, "INFO Channel 0%/0 : %[%] -> 1%[%] [send] via NET/IB/0/GDRDMA"}), kNode,
       "mlx5_0"},
      {"nccl-few-channels", "TwoForEightNics",
       rack_says({kEightNics, kByRail, kByNvlink,
                  "INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p "
                  "channels, 2 p2p channels per peer",
                  "INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0"}),
       kNode},
      {"nccl-few-channels", "TwoRings",
       rack_says({kEightNics, kByRail, kByNvlink, "INFO Channel 00/02 :    0   1   2   3   4   5   6   7",
                  "INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0"}),
       kNode, "channels"},
      {"nccl-few-channels", "OneRankHasFewerTrees",
       rack_says({kByNvlink, "INFO Trees [0] -1/-1/-1->%->-1 [1] -1/-1/-1->%->-1", "INFO Trees [0] -1/-1/-1->7->6"}, 7),
       kNode, "channels"},
      {"nccl-ring-order", "EveryOtherRank", two_servers_say([](int rank) -> std::string {
         return rank == 0 ? "INFO Channel 00/08 : 0   8   1   9   2  10   3  11   4  12   5  13   6  14   7  15" : "";
       }),
       ""},
      {"nccl-ring-order", "ATreeWithEightEdgesBetweenTwoMachines", two_servers_say([](int rank) {
         return fmt::format("INFO Trees [0] -1/-1/-1->{}->{}", rank, rank < 8 ? rank + 8 : rank == 8 ? -1 : 8);
       }),
       ""},
      {"nccl-plugin", "AskedForAndNotFound",
       rack_says({"INFO NCCL_NET_PLUGIN set by environment to aws-ofi.",
                  "INFO NET/Plugin: Could not find: libnccl-net-aws-ofi.so. Using internal network plugin.", kEightNics,
                  kByRail, kByNvlink}),
       kNode, "aws-ofi"},
  };
}

}  // namespace yoke::check
