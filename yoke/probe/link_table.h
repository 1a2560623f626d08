// The kernel's network interfaces, addresses and IPv4 routes: one of the probe's sources. As data, so that it can be
// asked of the kernel, written into a capture and read back; names and values are those of `ip -j -d addr` and
// `ip -j route`, which makes a capture (links.json) readable for people who know these.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::probe {

struct LinkAddress {
  std::string family;  // "inet", "inet6"
  std::string local;
  int prefixlen = 0;
  std::optional<std::string> broadcast;
  std::optional<std::string> scope;
  std::optional<bool> dynamic;  // by DHCP or the like; written where true, as ip does
  std::optional<bool> noprefixroute;
  std::optional<std::string> label;
  friend bool operator==(const LinkAddress&, const LinkAddress&) = default;
};

struct LinkInfo {
  std::string info_kind;  // "bridge", "veth", "bond"
  friend bool operator==(const LinkInfo&, const LinkInfo&) = default;
};

struct LinkEntry {
  int ifindex = 0;
  std::string ifname;
  std::vector<std::string> flags;  // "UP", "LOWER_UP", "NO-CARRIER", …
  int mtu = 0;
  std::string operstate;
  std::string link_type;  // "ether", "loopback"
  std::optional<std::string> address;
  std::optional<std::string> broadcast;
  std::optional<std::string> master;
  std::optional<std::string> parentbus;
  std::optional<std::string> parentdev;
  std::optional<LinkInfo> linkinfo;
  std::vector<LinkAddress> addr_info;
  std::optional<std::string> module_eeprom = {};  // 256 bytes in hex (module_eeprom.h); not of ip
  std::optional<std::string> flow_control = {};   // priorities with PFC (flow_control.h); not of ip
  std::optional<std::string> dscp = {};           // priorities by DSCP (flow_control.h); not of ip
  std::optional<std::int64_t> pause_received = {}, pause_sent = {},
                              discards_received = {};  // nic_counters.h; not of ip

  bool has_flag(std::string_view flag) const;
  friend bool operator==(const LinkEntry&, const LinkEntry&) = default;
};

struct LinkRoute {
  std::string dst;  // "default", "192.168.1.0/24", or a host's address
  std::optional<std::string> gateway;
  std::string dev;
  std::optional<std::string> protocol;
  std::optional<std::string> scope;
  std::optional<std::string> prefsrc;
  std::optional<int> metric;
  std::vector<std::string> flags;  // "linkdown"
  friend bool operator==(const LinkRoute&, const LinkRoute&) = default;
};

struct LinkTable {
  std::vector<LinkEntry> links;
  std::vector<LinkRoute> routes;
  friend bool operator==(const LinkTable&, const LinkTable&) = default;
};

LinkTable read_link_table();  // of the calling thread's network namespace
Document to_json(const LinkTable& table);
void from_json(const Document& document, LinkTable& table);

}  // namespace yoke::probe
