// What a node has of memory, and what has passed over its interfaces, at one moment: supervisors send it to the head of
// a job that asks for it. Plain data; what is not known is absent.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::job {

struct InterfaceState {
  std::string name = {};
  bool is_up = false;  // has a carrier
  // Of the kernel's network and of its RDMA port, since the start of the machine.
  std::optional<std::int64_t> sent_bytes = {}, received_bytes = {};
  friend bool operator==(const InterfaceState&, const InterfaceState&) = default;
};

struct NodeState {
  double time = 0;  // of the node's clock since its start, in seconds
  std::optional<std::int64_t> memory_bytes = {}, memory_available_bytes = {};
  std::vector<InterfaceState> interfaces = {};  // those that were asked for, in that order
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// Of this machine. Whether an interface is up is asked of the kernel, all else of the files.
NodeState read_node_state(const FileTree& machine, const std::vector<std::string>& interfaces);

}  // namespace yoke::job
