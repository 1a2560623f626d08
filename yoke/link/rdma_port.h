// The RDMA device behind an interface, as sysfs tells it: its state, the GID that RoCE v2 over IPv4 must use, and the
// counters that a healthy link never moves. The GID's index drifts with the order in which addresses came, so it is
// looked up each time and never written down.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/ip.h"

namespace yoke::link {

struct NamedCount {
  std::string name;
  std::int64_t value = 0;
  friend bool operator==(const NamedCount&, const NamedCount&) = default;
};

struct RdmaPort {
  std::string device;  // "rocep1s0f0"
  bool active = false;
  std::optional<int> gid_index;          // of RoCE v2 and the rail's own address; absent: the rail has none
  std::vector<NamedCount> error_counts;  // only those that tell of damage, by name
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
};

// Port 1 of the device whose network interface this is; nothing where there is none.
std::optional<RdmaPort> find_rdma_port(const FileTree& tree, const std::string& interface, Ipv4 address);

Document to_json(const RdmaPort& port);
void from_json(const Document& document, RdmaPort& port);

}  // namespace yoke::link
