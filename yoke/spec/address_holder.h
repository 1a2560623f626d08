// Who has the IPv4 addresses of a fast interface. That is not always the interface itself: RoCE works as well over a
// bond (mlx5_bond_0) and over a VLAN, and then the entries of the device's GID table name these.
#pragma once
#include <vector>

#include "yoke/spec/machine.h"

namespace yoke::spec {

bool is_link_local(Ipv4 address);  // 169.254/16: the machine gave it to itself

// The interface, the bond that it is a member of, or what else the GIDs of its device name. One with an address that
// somebody gave it comes before one with a makeshift; where none has any, it is the interface.
const NetworkInterface& address_holder(const Machine& machine, const NetworkInterface& interface,
                                       const std::vector<GidEntry>& gids);

}  // namespace yoke::spec
