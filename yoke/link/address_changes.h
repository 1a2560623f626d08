// The IPv4 addresses and routes of an interface as `ip` tells and takes them, and the commands that lead from what is
// there to what is wanted, and back to what was. An address is its words behind `ip address add`, so that whatever
// somebody gave with it (scope, broadcast, label, lifetime) comes back with it. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::link {

using Argv = std::vector<std::string>;

struct HeldAddress {
  std::string words;       // "192.168.0.1/24 brd 192.168.0.255"
  bool secondary = false;  // it goes with the first address of its subnet
  friend bool operator==(const HeldAddress&, const HeldAddress&) = default;
};

// Of one interface, in the kernel's order, from what `ip -json -4 address show` printed. Throws Error(kInvalid) for
// anything else.
std::vector<HeldAddress> parse_held_addresses(std::string_view json, std::string_view interface);
// What tells an address from others: "192.168.0.1/24", or "10.0.0.1 peer 10.0.0.2/32".
std::string address_name(std::string_view words);

// `wanted` (with its prefix length) is there, and nothing else.
bool has_exactly(const std::vector<HeldAddress>& now, const std::string& wanted);
std::vector<Argv> commands_to_set_addresses(const std::vector<HeldAddress>& now, const std::string& wanted,
                                            const std::string& interface);
// What was comes back, in its order, and `ours` goes unless it was there. What somebody else has added since is theirs.
std::vector<Argv> commands_to_restore_addresses(const std::vector<std::string>& was, const std::string& ours,
                                                const std::vector<HeldAddress>& now, const std::string& interface);

// The routes by an interface from what `ip -4 -o route show table all` printed, and those by others to the same
// destinations: of equals the first counts. Those that the kernel keeps for its own addresses are not among them.
std::vector<std::string> parse_routes_of(std::string_view printed, std::string_view interface);
// Those that are missing, and each destination's in their order again.
std::vector<Argv> commands_to_restore_routes(const std::vector<std::string>& was, const std::vector<std::string>& now,
                                             std::string_view interface);

}  // namespace yoke::link
