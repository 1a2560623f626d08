// The fast interfaces of this machine as the kernel tells them, through `ip -json` (netlink by another's hands): state,
// MTU, addresses and counters. Pure but for the functions that begin with read_.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::link {

struct LinkCounters {
  std::int64_t rx_bytes = 0;
  std::int64_t tx_bytes = 0;
  std::int64_t rx_errors = 0;
  std::int64_t tx_errors = 0;
  std::int64_t rx_dropped = 0;
  std::int64_t tx_dropped = 0;
  friend bool operator==(const LinkCounters&, const LinkCounters&) = default;
};

struct LinkInterface {
  std::string name;
  int mtu = 0;
  bool up = false;                // as the administrator wants it
  bool carrier = false;           // the other end is there
  std::vector<std::string> ipv4;  // with prefix length
  std::vector<std::string> ipv6;
  LinkCounters counters;
  friend bool operator==(const LinkInterface&, const LinkInterface&) = default;
};

// What `ip -json -s address show` printed. Throws Error(kInvalid) for anything else.
std::vector<LinkInterface> parse_link_interfaces(std::string_view json);
// The interface in what `ip -json route get` printed; nothing where the answer is no route.
std::optional<std::string> parse_route_interface(std::string_view json);

std::vector<LinkInterface> read_link_interfaces();
const LinkInterface* find_link_interface(const std::vector<LinkInterface>& interfaces, std::string_view name);
// By which interface an ordinary program's packets to `to` leave when they carry the address `from`.
std::optional<std::string> read_route_interface(const std::string& to, const std::string& from);

Document to_json(const LinkInterface& interface);
void from_json(const Document& document, LinkInterface& interface);

}  // namespace yoke::link
