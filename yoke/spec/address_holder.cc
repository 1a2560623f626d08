#include "yoke/spec/address_holder.h"

#include <algorithm>

namespace yoke::spec {
namespace {

using Holders = std::vector<const NetworkInterface*>;

Holders possible_holders(const Machine& machine, const NetworkInterface& interface, const std::vector<GidEntry>& gids) {
  Holders holders = {&interface};
  const NetworkInterface* master = interface.master ? find_interface(machine, *interface.master) : nullptr;
  if (master && master->kind == InterfaceKind::kBond) holders.push_back(master);
  for (const GidEntry& gid : gids) {
    const NetworkInterface* named = find_interface(machine, gid.interface);
    // Another master is a bridge, whose address is that of all its members.
    if (named && named != master) holders.push_back(named);
  }
  return holders;
}

bool has_given_address(const NetworkInterface& interface) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [](const Ipv4Prefix& prefix) { return !is_link_local(prefix.address); });
}

}  // namespace

bool is_link_local(Ipv4 address) { return address.value >> 16U == 0xA9FE; }

const NetworkInterface& address_holder(const Machine& machine, const NetworkInterface& interface,
                                       const std::vector<GidEntry>& gids) {
  const Holders holders = possible_holders(machine, interface, gids);
  for (const NetworkInterface* holder : holders) {
    if (has_given_address(*holder)) return *holder;
  }
  for (const NetworkInterface* holder : holders) {
    if (!holder->addresses.empty()) return *holder;
  }
  return interface;
}

}  // namespace yoke::spec
