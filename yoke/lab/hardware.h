// The hardware that a lab's node shows: a captured machine (tests/fixtures, carried in the program) with an identity of
// its own, to be laid over the node's /sys. All ports are down: the watcher brings them in step with the interfaces.
//
//   write_tree(lab_hardware({.machine = "spark", .node = 2}), folder);   // folder/sys, folder/etc
//
// Identity: node n has the fixture's MAC addresses and GUIDs plus (n - 1) * 0x1000. So node 1 is tests/fixtures/
// spark-pair, node 2 spark-pair-2; GIDs follow from the MAC addresses.
//
// What is not in the tree, so that the kernel's own shows through or nothing contradicts it: /sys/class/net and what an
// interface's folder says of its state (an entry here would hide the live one: interfaces are asked by netlink), the
// interfaces without hardware, /proc, the processors and NUMA nodes of /sys/devices/system (programs size their thread
// pools by them, and hwloc refuses half a topology), and of /etc all but dgx-release and nvidia/.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::lab {

struct LabHardwareOptions {
  std::string machine = "spark";  // spark, b300, or none: an empty tree
  int node = 1;                   // from 1
};
// An Error(kNotFound) for any other machine.
MemoryTree lab_hardware(const LabHardwareOptions& options);

// A network function of the fabric: half a port on a Spark, a NIC on a B300 server.
struct LabPort {
  std::string interface;    // "enp1s0f0np0"
  std::string mac;          // "4c:bb:47:0a:10:00"
  std::string pci_address;  // "0000:01:00.0"
  std::string rdma_device;  // "rocep1s0f0"; empty for the management port
  int port = 0;             // functions that differ in the PCI domain only are rails of one port
  std::string rail = "A";   // A in the lowest domain
  friend bool operator==(const LabPort&, const LabPort&) = default;
};
// Port 0 rail A, port 0 half B, port 1 half A, …
std::vector<LabPort> lab_ports(const FileTree& tree);

// The Ethernet function without RDMA: "enP7s7" on a Spark, "eno8303" on the B300 server.
std::optional<LabPort> lab_management_port(const FileTree& tree);

}  // namespace yoke::lab
