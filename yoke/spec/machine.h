// What one machine is, as plain data. Absent is a value: what a machine does not tell (a GB10's NVML answers "not
// supported" to half of the questions) is an empty optional, never a zero. docs/probe.md explains every field; the JSON
// names are the same as here. Filled by yoke/probe, read by plan, check, link and launch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/ip.h"
#include "yoke/base/units.h"

namespace yoke::spec {

struct Cpu {
  std::string model;         // "10x Cortex-X925 + 10x Cortex-A725"
  std::optional<int> cores;  // logical ones that are online
  std::optional<int> sockets;
  std::optional<int> numa_nodes;
  friend bool operator==(const Cpu&, const Cpu&) = default;
};

struct Memory {
  std::optional<Bytes> total;
  std::optional<Bytes> available;   // what a program can really have now, limits of the cgroup included
  std::optional<Bytes> limit;       // the least of the cgroups around us; absent: none
  bool unified = false;             // the GPU's memory is this very memory
  std::optional<Bytes> cached;      // file pages, which the kernel gives back when asked
  std::optional<Bytes> huge_pages;  // reserved as such: nobody else gets them
  std::optional<Bytes> swap_total;
  std::optional<Bytes> swap_free;
  std::optional<Bytes> cma_total;  // for large contiguous pieces
  std::optional<Bytes> cma_free;   // of it; more than there is: this kernel cannot register RDMA memory
  friend bool operator==(const Memory&, const Memory&) = default;
};

// The link of a device to the port above it. The best is what both ends can.
struct PcieLink {
  double speed_gt_per_second = 0;  // 32 for Gen5
  int width = 0;
  double speed_gt_per_second_max = 0;
  int width_max = 0;
  friend bool operator==(const PcieLink&, const PcieLink&) = default;
};

struct GpuProcess {
  int pid = 0;
  std::optional<Bytes> memory;
  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

struct Gpu {
  std::optional<int> index;  // NVML's number; absent: on the bus, but NVML does not show it
  std::string name;
  std::optional<std::string> uuid;
  std::optional<std::string> pci_address;         // "000f:01:00.0"
  std::optional<std::string> compute_capability;  // "12.1"
  std::optional<Bytes> memory;                    // absent on unified memory
  std::optional<Bytes> memory_free;
  std::optional<PcieLink> pcie;  // absent where the GPU is on the processor's chip
  std::optional<int> numa_node;
  std::optional<std::string> cpu_affinity;  // "0-63,128-191"
  std::optional<std::string> vbios;
  std::optional<bool> persistence;
  std::optional<int> clock_mhz;
  std::optional<int> clock_mhz_max;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> power_limit_default_w;  // the model's own
  std::optional<int> temperature_c;
  std::optional<int> utilization_percent;
  std::vector<std::string> clock_limits;  // what holds the clock down now: "power cap", "thermal", …
  std::optional<int> nvlinks;
  std::optional<int> nvlinks_active;
  std::optional<std::int64_t> nvlink_errors = {};  // CRC errors and replays of all links, since the driver started
  std::optional<std::int64_t> nvlink_errors_rising = {};  // of these, what came while the machine was probed
  std::optional<std::int64_t> nvlink_recoveries = {};     // how often a link was trained again
  std::optional<std::string> fabric_state = {};  // with the NVSwitches: "completed", "in progress", "not started"
  std::optional<std::int64_t> ecc_uncorrected =
      {};  // memory errors that could not be corrected, since the driver started
  std::optional<std::int64_t> ecc_uncorrected_total = {};  // in its life
  std::optional<bool> row_remap_pending = {};              // a bad row of memory is replaced at the next reset
  std::optional<bool> row_remap_failed = {};               // no spare row is left
  std::optional<std::string> iommu = {};                   // how the IOMMU treats it: "identity", "DMA", "DMA-FQ"
  std::vector<GpuProcess> processes;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// A counter of a port since its driver started, by the kernel's name: "link_downed", "packet_seq_err".
struct PortCounter {
  std::string name;
  std::int64_t value = 0;
  friend bool operator==(const PortCounter&, const PortCounter&) = default;
};

// How near devices are to each other, in nvidia-smi's words: X itself, NV18 by that many NVLinks, PIX below one PCIe
// bridge, PXB below several, PHB through a host bridge, NODE between host bridges of one NUMA node, SYS between nodes.
struct DeviceTopology {
  std::vector<std::string> devices;             // "GPU0", …, then the RDMA devices by name
  std::vector<std::vector<std::string>> paths;  // a row for each device, a column for each
  friend bool operator==(const DeviceTopology&, const DeviceTopology&) = default;
};

enum class InterfaceKind { kLoopback, kEthernet, kWifi, kBridge, kBond, kVirtual, kOther };

// What the module at this end of the cable says of itself.
struct CableModule {
  std::string form;    // "QSFP28", "QSFP112", "SFP"
  std::string medium;  // "copper", "active copper", "optical"
  std::string vendor;
  std::string part_number;
  std::optional<double> length_m;  // of a cable; the standards before CMIS know whole metres only
  friend bool operator==(const CableModule&, const CableModule&) = default;
};

struct NetworkInterface {
  std::string name;
  int index = 0;
  InterfaceKind kind = InterfaceKind::kOther;
  std::string mac;
  int mtu = 0;
  bool up = false;  // as the administrator wants it
  bool carrier = false;
  std::vector<Ipv4Prefix> addresses;
  std::vector<std::string> ipv6_addresses;  // with prefix length
  std::optional<bool> ipv6_disabled;
  std::optional<std::string> master;   // the bridge or bond it belongs to
  std::optional<BitsPerSecond> speed;  // as the port reports it; each half of a Spark's port reports the whole port's
  std::optional<std::string> driver;
  std::optional<std::string> pci_address;
  std::optional<PcieLink> pcie;
  std::optional<int> numa_node;
  std::optional<std::string> rdma_device;
  // Of a function with an RDMA device: which port of the machine, and which half of it. Rails are functions at the
  // same place of different PCI domains on one adapter; a port that is one function has only rail A.
  std::optional<int> port;
  std::optional<std::string> rail;
  std::optional<CableModule> module = {};  // absent: no cable, or no right to ask
  // Priorities with priority flow control (PFC): "3", "none"; absent: the driver does not tell.
  std::optional<std::string> flow_control = {};
  // The priority of packets by their DSCP: "usual" is DSCP / 8, "26:5" what differs from it; "none": by VLAN tag, so
  // that packets without one have priority 0. Absent: the driver does not tell.
  std::optional<std::string> dscp = {};
  // Since the driver started: pause frames, and packets that the NIC had no buffer for. Absent: it does not count them.
  std::optional<std::int64_t> pause_received = {}, pause_sent = {}, discards_received = {};
  friend bool operator==(const NetworkInterface&, const NetworkInterface&) = default;
};

struct Route {
  std::optional<Ipv4Prefix> destination;  // absent: the default route
  std::optional<Ipv4> gateway;
  std::string interface;
  std::optional<Ipv4> source;
  std::optional<int> metric;
  bool down = false;  // its interface has no carrier
  friend bool operator==(const Route&, const Route&) = default;
};

enum class GidType { kRoceV1, kRoceV2 };

struct GidEntry {
  int index = 0;
  GidType type = GidType::kRoceV2;
  std::string address;       // eight groups, as sysfs prints it
  std::optional<Ipv4> ipv4;  // of an IPv4-mapped address
  std::string interface;
  friend bool operator==(const GidEntry&, const GidEntry&) = default;
};

struct RdmaDevice {
  std::string name;
  std::string state;  // "ACTIVE", "DOWN"
  std::optional<std::string> physical_state;
  std::optional<std::string> link_layer;  // "Ethernet", "InfiniBand"
  std::optional<BitsPerSecond> rate;
  std::optional<std::string> interface;
  std::optional<std::string> pci_address;
  std::optional<std::string> firmware;
  std::optional<std::string> board;        // "MT_0000000970": which product of its maker
  std::optional<std::string> adapter;      // the system image GUID, the same for all functions of one card
  std::vector<GidEntry> gids;              // those in use
  std::optional<int> gid_index;            // the RoCE v2 entry of the interface's IPv4 address: what NCCL must use now
  std::optional<std::string> iommu = {};   // as of Gpu
  std::optional<int> bridges = {};         // PCI bridges above it
  std::vector<PortCounter> counters = {};  // those above zero that tell of faults or traffic
  friend bool operator==(const RdmaDevice&, const RdmaDevice&) = default;
};

struct NcclBuild {
  std::string path;
  std::optional<std::string> version;  // "2.28.9+cuda13.0"
  std::optional<std::string> build_id;
  std::optional<Bytes> size;
  std::vector<std::string> architectures;  // machine code inside: "sm_90", "sm_121"
  std::vector<std::string> ptx;            // code that the driver compiles for later GPUs: "compute_120"
  friend bool operator==(const NcclBuild&, const NcclBuild&) = default;
};
Document to_json(const NcclBuild& build);
void from_json(const Document& document, NcclBuild& build);

// A variable of NCCL, UCX, Gloo or Open MPI that is set on this machine.
struct NetworkSetting {
  std::string name;
  std::string value;
  std::string where;  // "environment", "/etc/nccl.conf"
  friend bool operator==(const NetworkSetting&, const NetworkSetting&) = default;
};
Document to_json(const NetworkSetting& setting);
void from_json(const Document& document, NetworkSetting& setting);

// A setting of the kernel: "kernel.numa_balancing" is "1".
struct KernelSetting {
  std::string name, value;
  friend bool operator==(const KernelSetting&, const KernelSetting&) = default;
};

// NVIDIA's service that joins the GPUs of a server through its NVSwitches.
struct FabricManager {
  bool installed = false;
  bool running = false;
  std::optional<std::string> version;  // must be the driver's
  friend bool operator==(const FabricManager&, const FabricManager&) = default;
};
Document to_json(const FabricManager& manager);
void from_json(const Document& document, FabricManager& manager);

// A line of the kernel log in which the driver reports an error of a GPU: "NVRM: Xid (PCI:0000:1b:00): 79, …".
struct XidLine {
  int number = 0;
  std::string pci_address;  // "0000:1b:00"
  std::string line;
  int count = 1;  // of this number on this GPU; the line is the last
  friend bool operator==(const XidLine&, const XidLine&) = default;
};
Document to_json(const XidLine& xid);
void from_json(const Document& document, XidLine& xid);

struct DgxRelease {
  std::optional<std::string> name;      // "DGX Spark"
  std::optional<std::string> platform;  // "GX10"
  std::optional<std::string> version;   // of the image it was installed from
  std::optional<std::string> update;    // the last update over the air
  bool hot_plug = false;                // NVIDIA's service that switches the NIC off without a cable
  friend bool operator==(const DgxRelease&, const DgxRelease&) = default;
};

struct Containers {
  std::vector<std::string> runtimes;         // "docker", "podman", "containerd"
  bool gpu = false;                          // NVIDIA's runtime or a CDI description is set up
  std::optional<std::string> inside;         // we are in one ourselves: "docker"
  std::vector<std::string> rdma_access;      // what there is of /dev/infiniband: "rdma_cm", "uverbs0"
  std::vector<std::string> gpu_access = {};  // the GPUs' files in /dev: "nvidia0"
  friend bool operator==(const Containers&, const Containers&) = default;
};

struct TimeState {
  std::optional<bool> synchronized;
  std::optional<Seconds> error;      // the kernel's own estimate of how wrong it may be
  std::vector<std::string> daemons;  // "chrony", "systemd-timesyncd", …: who is set up to keep it
  friend bool operator==(const TimeState&, const TimeState&) = default;
};

struct Machine {
  std::string hostname;
  std::string architecture;  // "aarch64", "x86_64"
  std::string os;
  std::string kernel;
  std::optional<std::string> vendor;  // this and the next two as the firmware has them (DMI)
  std::optional<std::string> product;
  std::optional<std::string> bios;
  std::optional<DgxRelease> dgx;
  std::optional<std::string> driver;        // NVIDIA's
  std::optional<std::string> cuda;          // the newest that the driver runs
  std::optional<std::string> cuda_toolkit;  // what is installed to compile with
  std::optional<std::string> gpu_problem;   // why NVML, although there, shows no GPU
  Cpu cpu;
  Memory memory;
  std::vector<Gpu> gpus;
  std::optional<DeviceTopology> topology;  // where there is more than one GPU or RDMA device
  std::vector<NetworkInterface> interfaces;
  std::vector<Route> routes;  // IPv4, main table
  std::vector<RdmaDevice> rdma_devices;
  std::vector<NcclBuild> nccl;
  std::vector<NetworkSetting> settings;
  Containers containers;
  std::optional<Bytes> memlock;  // how much a program may lock; absent with memlock_unlimited
  bool memlock_unlimited = false;
  std::optional<bool> ip_forward;
  std::optional<std::string> firewall;  // one that is switched on: "ufw", "firewalld"
  TimeState time;
  std::optional<std::string> allocation = {};  // of a job that we are in: "Slurm job 4711"
  std::optional<bool> open_driver = {};        // NVIDIA's kernel module is the open one
  std::vector<std::string> modules = {};       // of the kernel, among those that matter here; empty: not known
  std::optional<std::string> kernel_command_line = {};
  std::vector<KernelSetting> sysctl = {};       // among those that matter here
  std::vector<std::string> acs_redirects = {};  // PCI bridges between a GPU and its NIC that send all through the root
  std::optional<FabricManager> fabric_manager = {};  // absent: not known
  std::vector<XidLine> xids = {};                    // since the machine started
  friend bool operator==(const Machine&, const Machine&) = default;
};

// Raised whenever a field changes its meaning or goes; a field more does not raise it.
inline constexpr int kMachineSchema = 1;

Document to_json(const Machine& machine);
void from_json(const Document& document, Machine& machine);

// Look-ups that every reader of a Machine needs; null where there is none.
const NetworkInterface* find_interface(const Machine& machine, std::string_view name);
const RdmaDevice* find_rdma_device(const Machine& machine, std::string_view name);
// The interfaces with a port and a half, ordered by these: port 0 half A, port 0 half B, port 1 half A, …
std::vector<const NetworkInterface*> fast_interfaces(const Machine& machine);

}  // namespace yoke::spec
