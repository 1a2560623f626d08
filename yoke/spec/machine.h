// What one machine is, as plain data. Absent is a value: what a machine does not tell (a GB10's NVML answers "not
// supported" to half of the questions) is an empty optional, never a zero.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"

namespace yoke {

struct Cpu {
  std::string model;
  int cores = 0;  // logical ones, that a program may run on
  int numa_nodes = 1;
  friend bool operator==(const Cpu&, const Cpu&) = default;
};

struct Memory {
  Bytes total;
  Bytes available;             // what a program can really have now, limits of the cgroup included
  std::optional<Bytes> limit;  // of the cgroup
  bool unified = false;        // the GPU's memory is this very memory
  friend bool operator==(const Memory&, const Memory&) = default;
};

struct PcieLink {
  double speed_gt_per_second = 0;  // 32 for Gen5
  int width = 0;
  double speed_gt_per_second_max = 0;
  int width_max = 0;
  friend bool operator==(const PcieLink&, const PcieLink&) = default;
};

struct Gpu {
  std::string name;
  std::optional<std::string> pci_address;         // "000f:01:00.0"
  std::optional<std::string> compute_capability;  // "12.1"
  std::optional<Bytes> memory;                    // absent on unified memory
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct NetworkInterface {
  std::string name;
  std::string mac;
  int mtu = 0;
  bool up = false;
  bool carrier = false;
  std::vector<std::string> addresses;  // with prefix length
  std::optional<BitsPerSecond> speed;  // as the port reports it; each half of a Spark's port reports the whole port's
  std::optional<std::string> pci_address;
  std::optional<PcieLink> pcie;
  friend bool operator==(const NetworkInterface&, const NetworkInterface&) = default;
};

enum class GidType { kRoceV1, kRoceV2 };

struct Gid {
  int index = 0;
  GidType type = GidType::kRoceV2;
  std::string address;  // eight groups, as sysfs prints it
  std::string interface;
  friend bool operator==(const Gid&, const Gid&) = default;
};

struct RdmaDevice {
  std::string name;
  std::string state;  // "ACTIVE", "DOWN"
  std::optional<BitsPerSecond> rate;
  std::optional<std::string> pci_address;
  std::optional<std::string> firmware;
  std::vector<Gid> gids;
  friend bool operator==(const RdmaDevice&, const RdmaDevice&) = default;
};

struct Machine {
  std::string hostname;
  std::string architecture;  // "aarch64", "x86_64"
  std::string os;
  std::string kernel;
  std::optional<std::string> product;  // the firmware's name for it (DMI)
  std::optional<std::string> driver;   // NVIDIA's
  Cpu cpu;
  Memory memory;
  std::vector<Gpu> gpus;
  std::vector<NetworkInterface> interfaces;
  std::vector<RdmaDevice> rdma_devices;
  friend bool operator==(const Machine&, const Machine&) = default;
};

Document to_json(const Machine& machine);
Machine machine_from_json(const Document& document);

}  // namespace yoke
