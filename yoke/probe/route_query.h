// By which interfaces an ordinary program's packets to an address leave: asked of the kernel itself, and so by all of
// its rules and tables. The main table alone (probe/link_table.h) knows neither `ip rule` nor routes that discard.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/ip.h"
#include "yoke/base/netlink.h"

namespace yoke::probe {

// Several where the route has several next hops; none where no route leads there, or one that discards. `from` must be
// an address of this machine: what answers a peer's packets carries it.
std::vector<std::string> ask_route(Ipv4 to, std::optional<Ipv4> from);

// The interfaces' numbers in the body of the kernel's answer.
std::vector<unsigned> route_devices(NetlinkData body);

}  // namespace yoke::probe
