// The devices on the PCI bus, as /sys tells them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/spec/machine.h"

namespace yoke::probe {

struct PciDevice {
  std::string address;  // "0002:01:00.1"
  std::string folder;   // "/sys/devices/pci0002:00/0002:00:00.0/0002:01:00.1", free of links
  std::string vendor;   // "0x15b3"; empty where it is not told
  std::string device;
  std::string device_class;
  std::optional<int> numa_node;
  std::optional<std::string> driver;

  std::string domain() const;  // "0002"
  std::string place() const;   // "01:00.1": where it is within its domain
};

std::map<std::string, PciDevice> read_pci_devices(const FileTree& files);  // by address

// Nothing where one of the four values is unknown: devices on the processor's chip have no link.
std::optional<spec::PcieLink> read_pcie_link(const FileTree& files, const PciDevice& device);

// The PCI function that an entry of a class ("/sys/class/infiniband/mlx5_0") belongs to.
std::optional<std::string> pci_address_of(const FileTree& files, const std::string& class_entry);

// How the IOMMU treats a function: "identity" (addresses pass as they are), "DMA" or "DMA-FQ" (it translates); nothing
// where there is no IOMMU, or the kernel does not tell.
std::optional<std::string> read_iommu_type(const FileTree& files, const std::string& pci_address);

// The bridges above a device, from the root port down: the parts of its folder.
std::vector<std::string> bridges_above(const PciDevice& device);

// How near two devices are, by their places on the bus alone: PIX, PXB, PHB, NODE or SYS (see DeviceTopology).
std::string pci_path(const PciDevice& a, const PciDevice& b);

}  // namespace yoke::probe
