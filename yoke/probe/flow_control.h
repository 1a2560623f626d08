// Priority flow control of an interface and how it sorts packets into priorities, asked of its driver by the kernel's
// interface for data center bridging.
#pragma once
#include "yoke/base/netlink.h"
#include "yoke/probe/link_table.h"

namespace yoke::probe {

// As in LinkEntry: "3" for priority 3 alone, "none"; "usual", "26:5", "none". Absent where the driver does not tell.
struct FlowControl {
  std::optional<std::string> priorities, dscp;
};
// The attributes of an answer to DCB_CMD_IEEE_GET.
FlowControl parse_flow_control(NetlinkData attributes);

// Fills LinkEntry::flow_control and dscp of those whose driver tells.
void read_flow_control(LinkTable& table);

}  // namespace yoke::probe
