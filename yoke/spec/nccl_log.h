// What an NCCL log (NCCL_DEBUG=INFO) tells of how the ranks talk, as plain data. yoke/check reads it from text and
// evaluates it.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "yoke/base/ip.h"
#include "yoke/base/units.h"

namespace yoke::spec {

// A connection's queue pair: "NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000)".
struct NcclQueue {
  int device = 0;  // a place in NcclHost::devices
  int mtu = 0;     // of RDMA, in bytes
  int gid_index = 0;
  std::optional<Ipv4> ipv4;  // of the GID
  bool link_local = false;   // the GID is fe80::
  friend auto operator<=>(const NcclQueue&, const NcclQueue&) = default;
};

// A channel from one rank to another: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM".
struct NcclChannel {
  int from = 0, to = 0;
  std::string way;  // "P2P", "SHM", "NET/IB/0"
  friend auto operator<=>(const NcclChannel&, const NcclChannel&) = default;
};

// The order in which a ring goes through the ranks of a communicator: "Channel 00/04 : 0 1 3 2".
struct NcclRing {
  std::vector<int> ranks;
  std::string line;
  friend bool operator==(const NcclRing&, const NcclRing&) = default;
};

// A line "NCCL WARN …" as it stands, without those that are known to mean nothing.
struct NcclWarning {
  std::string host, text;
  friend bool operator==(const NcclWarning&, const NcclWarning&) = default;
};

struct NcclHost {
  std::vector<std::string> devices;            // RDMA, as "NET/IB : Using" lists them
  std::map<std::string, std::string> pci;      // where each is, from its pciPath: "0002:01:00.0"
  std::vector<std::string> socket_interfaces;  // as "NET/Socket : Using" lists them: "enP7s7:192.168.0.111"
  std::optional<std::string> bootstrap;        // "enP7s7:192.168.1.10"
  std::set<std::string> networks;              // "IB", "Socket", a plugin's name
  std::map<std::string, int> channels;         // by way: "NET/IB/0", "NET/Socket/0", "P2P", "SHM"
  std::optional<std::string> provider;         // of libfabric, under a plugin: "efa", "tcp;ofi_rxm"
  int channels_gpu_direct = 0;
  bool gpu_direct_enabled = false;            // for some device
  std::set<std::string> gpu_direct_disabled;  // devices
  std::set<NcclQueue> queues;
  // What the number behind "NET/IB/" stands for, where the log says it: "Made virtual device [4] name=a+b … ndevs=2",
  // or "Using [0]={[0] a:1/RoCE, [1] b:1/RoCE}", is two devices that NCCL uses as one.
  std::map<int, std::vector<std::string>> virtual_devices;
  bool no_device = false;                     // "NET/IB : No device found."
  std::set<int> ranks;                        // those that spoke on this host
  std::set<NcclChannel> links;                // at most some
  std::optional<bool> nvls;                   // NVLink SHARP, as NCCL says of its devices
  std::set<int> coll_channels;                // as each rank says: "16 coll channels, …"
  std::set<int> ring_counts, tree_counts;     // "Channel 00/16 : …", and how many one line "Trees …" lists
  int coll_lines = 0, tree_lines = 0;         // those lines: more than ranks are of several communicators
  std::map<std::string, std::string> set;     // what NCCL says that the environment or a file sets: NCCL_NET_PLUGIN
  std::optional<std::string> plugin_failure;  // a plugin's library that could not be loaded
  // Lines of the log as they stand, the first of each kind, for evidence: "no-device", "network", "sockets", "devices",
  // "provider", "nvls", "coll-channels", "rings", "trees", "gpu-direct", "plugin"; by its way the first channel
  // ("NET/IB/0").
  std::map<std::string, std::string> lines;
  std::map<NcclQueue, std::string> queue_lines;
  friend bool operator==(const NcclHost&, const NcclHost&) = default;
};

// What nccl-tests printed, where the log holds its table.
struct NcclTestsResult {
  std::set<std::string> hosts;
  std::string gpu;               // of the first rank: "NVIDIA GB10"
  std::optional<Bytes> size;     // of the largest row
  BytesPerSecond bus_bandwidth;  // of that row
  std::optional<BytesPerSecond> average;
  std::string line;  // that row, or that of the average
  friend bool operator==(const NcclTestsResult&, const NcclTestsResult&) = default;
};

struct NcclLog {
  std::optional<std::string> version;  // "2.28.9+cuda13.0"
  std::optional<int> ranks, nodes;     // of the largest communicator
  std::map<std::string, NcclHost> hosts;
  std::optional<std::string> plugin;  // a network plugin's file
  std::map<int, NcclRing> rings;      // by channel, of the communicator with the most ranks
  // By channel and rank: those that the rank said are above it in the tree, -1 for none. Several communicators number
  // their ranks alike.
  std::map<std::pair<int, int>, std::set<int>> tree_parents;
  std::map<int, std::string> tree_lines;  // by rank, as they stand
  int route_overrides = 0;                // "Subnet-aware routing: overriding dev"
  bool listeners_capped = false;          // "ListenerRouting … advertised=2 observed=4"
  bool tree_failed = false;
  bool started = false;               // "Init START": newer releases say so before they begin
  std::string start_line;             // the line that says so
  bool complete = false;              // a communicator came to be
  std::vector<NcclWarning> warnings;  // each once, at most some
  std::optional<std::string> error;   // the first line of the job's own in which it tells of an error or of a vain wait
  NcclTestsResult tests;
  int lines = 0;  // that were NCCL's or nccl-tests'
  friend bool operator==(const NcclLog&, const NcclLog&) = default;
};

}  // namespace yoke::spec
