// Addresses for the rails that a guide left out, beside those that it gave.
#include <algorithm>
#include <set>

#include "yoke/link/adopt.h"
#include "yoke/spec/address_holder.h"

namespace yoke::link {
namespace {

// Where a bond or a VLAN has the address, or InfiniBand needs none, there is nothing to propose.
bool wants_address(const std::vector<FoundNode>& nodes, const spec::LinkEnd& end) {
  const spec::Machine& machine = nodes[static_cast<std::size_t>(end.node)].report.machine;
  const spec::NetworkInterface& interface = interface_at(nodes, end);
  const spec::RdmaDevice* device = spec::find_rdma_device(machine, interface.rdma_device.value_or(""));
  if (device && device->link_layer.value_or("Ethernet") != "Ethernet") return false;
  if (interface.master) return false;
  return &address_holder(machine, interface, device ? device->gids : std::vector<spec::GidEntry>{}) == &interface;
}

std::set<Ipv4Prefix> networks_of_all(const std::vector<FoundNode>& nodes) {
  std::set<Ipv4Prefix> networks;
  for (const FoundNode& node : nodes) {
    for (const spec::NetworkInterface& interface : node.report.machine.interfaces) {
      for (const Ipv4Prefix& prefix : interface.addresses) networks.insert(prefix.network());
    }
    for (const spec::Route& route : node.report.machine.routes) {
      const spec::NetworkInterface* by = spec::find_interface(node.report.machine, route.interface);
      const bool is_of_rail = by && by->port;  // made with an address, which is counted above
      if (route.destination && !is_of_rail) networks.insert(route.destination->network());
    }
  }
  return networks;
}

// The address of the port's other rail on the same node.
const Ipv4Prefix* twin_address(const EndAddresses& addresses, const spec::LinkEnd& end) {
  for (const auto& [other, address] : addresses) {
    if (other.node == end.node && other.port == end.port && other.rail != end.rail) return &address;
  }
  return nullptr;
}

Ipv4Prefix host_in(const Ipv4Prefix& network, const Ipv4Prefix& as) {
  const std::uint32_t hosts = ~std::uint32_t{0} >> network.length;
  return {{network.address.value | (as.address.value & hosts)}, network.length};
}

// The first network after that of the twins which nobody uses: 192.168.101.0 after 192.168.100.0.
std::optional<Ipv4Prefix> next_network(const Ipv4Prefix& twin, const std::set<Ipv4Prefix>& used) {
  if (twin.length < 16 || twin.length > 30) return std::nullopt;
  const std::uint32_t size = std::uint32_t{1} << (32U - static_cast<unsigned>(twin.length));
  Ipv4Prefix next = twin.network();
  for (int tries = 0; tries < 256; ++tries) {
    next.address.value += size;
    const bool is_free = std::none_of(used.begin(), used.end(), [&](const auto& one) { return overlap(one, next); });
    if (is_free && next.address.value >> 16U == twin.address.value >> 16U) return next;
  }
  return std::nullopt;
}

// A group of which some ends have addresses: the others get free host numbers in the same network.
void join_network(EndAddresses& addresses, const std::vector<spec::LinkEnd>& group,
                  const std::vector<spec::LinkEnd>& missing) {
  const auto known =
      std::find_if(group.begin(), group.end(), [&](const spec::LinkEnd& end) { return addresses.contains(end); });
  const Ipv4Prefix network = addresses.at(*known).network();
  const auto is_taken = [&](const Ipv4Prefix& address) {
    return std::any_of(addresses.begin(), addresses.end(),
                       [&](const auto& one) { return one.second.address == address.address; });
  };
  for (const spec::LinkEnd& end : missing) {
    for (std::uint32_t host = static_cast<std::uint32_t>(end.node) + 1; host < network.host_count(); ++host) {
      const Ipv4Prefix address{network.host(host), network.length};
      if (is_taken(address)) continue;
      addresses[end] = address;
      break;
    }
  }
}

}  // namespace

EndAddresses complete_addresses(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& there) {
  EndAddresses addresses = there;
  const bool given =
      std::any_of(there.begin(), there.end(), [](const auto& one) { return !is_link_local(one.second); });
  if (!given) return addresses;
  std::set<Ipv4Prefix> used = networks_of_all(nodes);
  for (const std::vector<spec::LinkEnd>& group : subnet_groups(map)) {
    std::vector<spec::LinkEnd> missing;
    for (const spec::LinkEnd& end : group) {
      if (!addresses.contains(end)) missing.push_back(end);
    }
    const bool wanted = std::all_of(missing.begin(), missing.end(),
                                    [&](const spec::LinkEnd& end) { return wants_address(nodes, end); });
    if (missing.empty() || !wanted) continue;
    if (missing.size() < group.size()) {
      join_network(addresses, group, missing);
      continue;
    }
    const bool has_twins = std::all_of(group.begin(), group.end(), [&](const spec::LinkEnd& end) {
      const Ipv4Prefix* twin = twin_address(addresses, end);
      return twin && !is_link_local(*twin) && twin->network() == twin_address(addresses, group.front())->network();
    });
    const auto network = has_twins ? next_network(*twin_address(addresses, group.front()), used) : std::nullopt;
    if (!network) continue;
    used.insert(*network);
    for (const spec::LinkEnd& end : group) addresses[end] = host_in(*network, *twin_address(addresses, end));
  }
  return addresses;
}

}  // namespace yoke::link
