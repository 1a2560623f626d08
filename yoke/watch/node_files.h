// What the files of a machine say at this moment, read into a Sample: /proc and /sys, through a FileTree so that tests
// can give their own. A file that is missing or makes no sense leaves its part of the sample absent.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

// The running system, read with one open each. DiskTree follows links itself, which costs ten times as much.
class LiveTree final : public DiskTree {
 public:
  std::optional<std::string> read(std::string_view path) const override;
};

void read_cpu(const FileTree& files, CpuSample& cpu);
void read_memory(const FileTree& files, MemorySample& memory);
std::vector<DiskSample> read_disks(const FileTree& files);  // whole disks
Total read_tcp_retransmits(const FileTree& files);

// The counters of /proc/net/dev, by name; loopback left out.
std::vector<RailSample> read_interface_counters(const FileTree& files);

// Where the RDMA device and the PCIe link of an interface are.
struct RailPlace {
  std::string interface;
  std::optional<std::string> rail = {};
  std::optional<int> port = {};
  std::optional<std::string> rdma_device = {}, pci_address = {};
};
void read_rdma_port(const FileTree& files, const RailPlace& place, RailSample& rail);
// What may be a few seconds old: the port's physical state, and its counters one by one.
void read_rdma_counters(const FileTree& files, const RailPlace& place, RailSample& rail);
void copy_rdma_counters(const RailSample& from, RailSample& to);
void read_pcie_width(const FileTree& files, const RailPlace& place, RailSample& rail);

// Temperatures and powers of /sys/class/hwmon: found once, read often.
class SensorFiles {
 public:
  explicit SensorFiles(const FileTree& files);
  std::vector<SensorSample> read(const FileTree& files) const;

 private:
  struct Place {
    std::string path, chip, name;
    bool is_power = false;
  };
  std::vector<Place> places_;
};

}  // namespace yoke::watch
