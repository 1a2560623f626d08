// The plan of addresses for nodes that have none: that of the lab, and of the examples in the documents.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/link/adopt.h"

namespace yoke::link {
namespace {

// Third bytes from `first` on; the first of these whose networks nobody on any node uses.
struct Pool {
  std::uint32_t base;
  std::uint32_t first;
};
constexpr std::array kPools = {Pool{192U << 24U | 168U << 16U, 100}, Pool{172U << 24U | 30U << 16U, 0},
                               Pool{10U << 24U | 177U << 16U, 0}};

// Around a ring each cable has ten numbers, so that 110 and 111 are the rails of the second.
constexpr std::uint32_t kNumbersPerCable = 10;

struct Numbered {
  std::vector<spec::LinkEnd> ends;
  std::uint32_t number = 0;
};

// Which cable of a ring joins two neighbours: that from node i to node i + 1 is cable i.
std::uint32_t cable_of(const std::vector<spec::LinkEnd>& ends, std::size_t nodes) {
  const auto a = static_cast<std::uint32_t>(ends.front().node);
  const auto b = static_cast<std::uint32_t>(ends.back().node);
  return a == 0 && b + 1 == nodes ? b : a;
}

std::vector<Numbered> number_groups(const LinkMap& map, std::size_t nodes) {
  std::vector<Numbered> numbered;
  std::map<std::uint32_t, std::uint32_t> next;  // by cable
  std::uint32_t count = 0;
  for (std::vector<spec::LinkEnd>& group : subnet_groups(map)) {
    if (map.topology == spec::Topology::kRing) {
      const std::uint32_t cable = cable_of(group, nodes);
      const std::uint32_t number = cable * kNumbersPerCable + next[cable]++;
      numbered.push_back({std::move(group), number});
    } else {
      numbered.push_back({std::move(group), count++});
    }
  }
  return numbered;
}

// Networks of everything but the fast interfaces, whose present addresses would go.
std::vector<Ipv4Prefix> networks_in_use(const std::vector<FoundNode>& nodes) {
  std::vector<Ipv4Prefix> networks;
  for (const FoundNode& node : nodes) {
    const spec::Machine& machine = node.report.machine;
    for (const spec::NetworkInterface& interface : machine.interfaces) {
      if (interface.port) continue;
      for (const Ipv4Prefix& prefix : interface.addresses) networks.push_back(prefix.network());
    }
    for (const spec::Route& route : machine.routes) {
      const spec::NetworkInterface* interface = spec::find_interface(machine, route.interface);
      if (route.destination && interface && !interface->port) networks.push_back(route.destination->network());
    }
  }
  return networks;
}

Ipv4Prefix subnet(const Pool& pool, std::uint32_t number) { return {{pool.base | (pool.first + number) << 8U}, 24}; }

bool fits(const Pool& pool, const std::vector<Numbered>& groups, const std::vector<Ipv4Prefix>& used) {
  return std::all_of(groups.begin(), groups.end(), [&](const Numbered& group) {
    return pool.first + group.number <= 255 && std::none_of(used.begin(), used.end(), [&](const Ipv4Prefix& other) {
             return overlap(subnet(pool, group.number), other);
           });
  });
}

}  // namespace

EndAddresses propose_addresses(const std::vector<FoundNode>& nodes, const LinkMap& map) {
  const std::vector<Numbered> groups = number_groups(map, nodes.size());
  const std::vector<Ipv4Prefix> used = networks_in_use(nodes);
  const auto pool = std::find_if(kPools.begin(), kPools.end(), [&](const Pool& p) { return fits(p, groups, used); });
  if (pool == kPools.end()) {
    throw Error(ErrorCode::kExhausted, "no free subnets could be found for the rails",
                "192.168.100.0, 172.30.0.0 and 10.177.0.0 and those after them are in use: give addresses yourself "
                "(docs/cluster-file.md)");
  }
  EndAddresses addresses;
  for (const Numbered& group : groups) {
    const Ipv4Prefix network = subnet(*pool, group.number);
    for (const spec::LinkEnd& end : group.ends) {
      addresses[end] = {network.host(static_cast<std::uint32_t>(end.node) + 1), network.length};
    }
  }
  return addresses;
}

}  // namespace yoke::link
