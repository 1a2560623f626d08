// The interfaces of the calling thread's network namespace, asked of the kernel (base/netlink.h).
#pragma once
#include <vector>

#include "yoke/base/files.h"
#include "yoke/lab/hardware_changes.h"

namespace yoke::lab {

std::vector<InterfaceState> read_interfaces();  // sorted by index

// Can be read whenever links or addresses have changed. Does not block.
UniqueFd open_link_events();
void drain_link_events(const UniqueFd& events);

}  // namespace yoke::lab
