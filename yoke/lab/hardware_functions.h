// The network functions of a hardware tree that have an RDMA device, as /sys tells them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::lab {

struct RdmaFunction {
  std::string device;       // "rocep1s0f0"
  std::string interface;    // "enp1s0f0np0"
  std::string pci_address;  // "0000:01:00.0"
  std::string pci_folder;   // "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0", free of links, as those below
  std::string rdma_folder() const { return pci_folder + "/infiniband/" + device; }
  std::string net_folder() const { return pci_folder + "/net/" + interface; }
};

// Sorted by device. A device without an interface is passed over: through the overlay of a node one also sees the RDMA
// devices of the machine that runs the lab, whose interfaces are not in the node.
std::vector<RdmaFunction> find_rdma_functions(const FileTree& tree);

// The PCI devices that share a root port with one of the functions (ports, switches, on a B300 server the GPU too), by
// address, with their folders. Other devices may belong to the machine below.
std::map<std::string, std::string> find_pci_neighbours(const FileTree& tree,
                                                       const std::vector<RdmaFunction>& functions);

}  // namespace yoke::lab
