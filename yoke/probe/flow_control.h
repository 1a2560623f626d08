// Priority flow control of an interface, how it sorts packets into priorities, and the pause frames of priorities,
// asked of its driver by the kernel's interface for data center bridging (DCB).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "yoke/base/files.h"
#include "yoke/base/netlink.h"
#include "yoke/probe/link_table.h"

namespace yoke::probe {

// As in LinkEntry: "3" for priority 3 alone, "none"; "usual", "26:5", "none". Absent where the driver does not tell.
struct FlowControl {
  std::optional<std::string> priorities, dscp;
  std::optional<std::int64_t> pause_received, pause_sent;  // frames of all priorities; absent where there were none
};
// The attributes of an answer to DCB_CMD_IEEE_GET.
FlowControl parse_flow_control(NetlinkData attributes);

// Of one interface; nothing where its driver has no DCB.
UniqueFd open_flow_control_socket();
FlowControl ask_flow_control(const UniqueFd& socket, const std::string& interface);

// Fills LinkEntry::flow_control and dscp of those whose driver tells.
void read_flow_control(LinkTable& table);

}  // namespace yoke::probe
