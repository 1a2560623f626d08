// What is made to look broken in a node's hardware tree, beyond what the interfaces themselves can be made to do. The
// lab writes it as JSON into the node; the watcher reads it.
//
//   {"gid_drift": ["roceP2p1s0f0"], "narrow_pcie": ["0002:01:00.0"], "port_speed_100": ["rocep1s0f0"]}
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/file_tree.h"

namespace yoke::lab {

// Below the node's root.
inline constexpr std::string_view kHardwareFaultsPath = "/run/yoke-lab/hardware-faults.json";

struct HardwareFaults {
  std::vector<std::string> gid_drift;       // RDMA devices whose IPv4 RoCE v2 entry is not at its index, but later
  std::vector<std::string> narrow_pcie;     // PCI addresses with half of their lanes
  std::vector<std::string> port_speed_100;  // RDMA devices whose link agreed on 100 Gb/s
  Document memory;                          // whatever the lab keeps here: the watcher does not look at it
  friend bool operator==(const HardwareFaults&, const HardwareFaults&) = default;
};

// Strict: unknown keys and wrong types are an Error, as nobody but the lab writes this file.
HardwareFaults parse_hardware_faults(std::string_view json, std::string_view source);

// An Error(kNotFound) that names the first device which the tree does not have: such a fault would do nothing.
void check_hardware_faults(const FileTree& tree, const HardwareFaults& faults);

}  // namespace yoke::lab
