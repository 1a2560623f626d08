// The link table, asked of the kernel.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <map>

#include "yoke/base/netlink.h"
#include "yoke/probe/link_table.h"

namespace yoke::probe {
namespace {

// By ifindex; a link's master is known by number until all have names.
struct Tables {
  std::map<unsigned, LinkEntry> links;
  std::map<unsigned, unsigned> masters;
  std::vector<LinkRoute> routes;
};

std::vector<std::string> flags_of(unsigned flags) {
  constexpr std::array kNames = {std::pair{IFF_LOOPBACK, "LOOPBACK"},
                                 std::pair{IFF_BROADCAST, "BROADCAST"},
                                 std::pair{IFF_POINTOPOINT, "POINTOPOINT"},
                                 std::pair{IFF_MULTICAST, "MULTICAST"},
                                 std::pair{IFF_NOARP, "NOARP"},
                                 std::pair{IFF_SLAVE, "SLAVE"},
                                 std::pair{IFF_MASTER, "MASTER"},
                                 std::pair{IFF_UP, "UP"},
                                 std::pair{IFF_LOWER_UP, "LOWER_UP"}};
  std::vector<std::string> names;
  if ((flags & IFF_UP) != 0 && (flags & IFF_LOWER_UP) == 0) names.emplace_back("NO-CARRIER");
  for (const auto& [bit, name] : kNames) {
    if ((flags & static_cast<unsigned>(bit)) != 0) names.emplace_back(name);
  }
  return names;
}

std::string operstate_of(unsigned char state) {
  constexpr std::array kNames = {"UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"};
  return state < kNames.size() ? kNames[state] : fmt::format("{}", state);
}

std::string link_type_of(unsigned short type) {
  switch (type) {
    case ARPHRD_ETHER:
      return "ether";
    case ARPHRD_LOOPBACK:
      return "loopback";
    case ARPHRD_INFINIBAND:
      return "infiniband";
    case ARPHRD_NONE:
      return "none";
    default:
      return fmt::format("{}", type);
  }
}

std::string hardware_address(NetlinkData value) {
  std::string text;
  for (const char byte : value)
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", static_cast<unsigned char>(byte));
  return text;
}

std::string address_text(int family, NetlinkData value) {
  char text[INET6_ADDRSTRLEN] = "";
  const std::size_t size = family == AF_INET ? 4 : 16;
  if (value.size() >= size) inet_ntop(family, value.data(), text, sizeof text);
  return text;
}

std::string scope_of(unsigned char scope) {
  switch (scope) {
    case RT_SCOPE_UNIVERSE:
      return "global";
    case RT_SCOPE_LINK:
      return "link";
    case RT_SCOPE_HOST:
      return "host";
    default:
      return fmt::format("{}", scope);
  }
}

// Who made a route. By hand, without saying so, is "boot", which ip does not print.
std::optional<std::string> protocol_of(unsigned char protocol) {
  switch (protocol) {
    case RTPROT_BOOT:
      return std::nullopt;
    case RTPROT_KERNEL:
      return "kernel";
    case RTPROT_STATIC:
      return "static";
    case RTPROT_DHCP:
      return "dhcp";
    default:
      return fmt::format("{}", protocol);
  }
}

void take_link(NetlinkData body, Tables& tables) {
  const auto header = read_netlink<ifinfomsg>(body);
  const auto index = static_cast<unsigned>(header.ifi_index);
  LinkEntry link{.ifindex = header.ifi_index,
                 .flags = flags_of(header.ifi_flags),
                 .operstate = "UNKNOWN",
                 .link_type = link_type_of(header.ifi_type)};
  for_each_attribute(netlink_after(body, sizeof header), [&](unsigned short type, NetlinkData value) {
    if (type == IFLA_IFNAME) link.ifname = netlink_text(value);
    if (type == IFLA_MTU) link.mtu = read_netlink<int>(value);
    if (type == IFLA_OPERSTATE) link.operstate = operstate_of(read_netlink<unsigned char>(value));
    if (type == IFLA_ADDRESS) link.address = hardware_address(value);
    if (type == IFLA_BROADCAST) link.broadcast = hardware_address(value);
    if (type == IFLA_MASTER) tables.masters[index] = read_netlink<unsigned>(value);
    if (type == IFLA_PARENT_DEV_NAME) link.parentdev = netlink_text(value);
    if (type == IFLA_PARENT_DEV_BUS_NAME) link.parentbus = netlink_text(value);
    if (type == IFLA_LINKINFO) {
      for_each_attribute(value, [&](unsigned short inner, NetlinkData kind) {
        if (inner == IFLA_INFO_KIND) link.linkinfo = LinkInfo{netlink_text(kind)};
      });
    }
  });
  tables.links[index] = std::move(link);
}

void take_address(NetlinkData body, Tables& tables) {
  const auto header = read_netlink<ifaddrmsg>(body);
  const auto link = tables.links.find(header.ifa_index);
  if (link == tables.links.end() || (header.ifa_family != AF_INET && header.ifa_family != AF_INET6)) return;
  LinkAddress address{.family = header.ifa_family == AF_INET ? "inet" : "inet6",
                      .prefixlen = header.ifa_prefixlen,
                      .scope = scope_of(header.ifa_scope)};
  unsigned flags = header.ifa_flags;
  for_each_attribute(netlink_after(body, sizeof header), [&](unsigned short type, NetlinkData value) {
    // On a point-to-point link IFA_ADDRESS is the peer's, and IFA_LOCAL ours; IPv6 has IFA_ADDRESS alone otherwise.
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && address.local.empty())) {
      address.local = address_text(header.ifa_family, value);
    }
    if (type == IFA_BROADCAST) address.broadcast = address_text(header.ifa_family, value);
    if (type == IFA_LABEL) address.label = netlink_text(value);
    if (type == IFA_FLAGS) flags = read_netlink<unsigned>(value);
  });
  if ((flags & IFA_F_PERMANENT) == 0) address.dynamic = true;
  if ((flags & IFA_F_NOPREFIXROUTE) != 0) address.noprefixroute = true;
  link->second.addr_info.push_back(std::move(address));
}

void take_route(NetlinkData body, Tables& tables) {
  const auto header = read_netlink<rtmsg>(body);
  unsigned table = header.rtm_table;
  unsigned device = 0;
  std::string destination;
  LinkRoute route{.protocol = protocol_of(header.rtm_protocol)};
  if (header.rtm_scope != RT_SCOPE_UNIVERSE) route.scope = scope_of(header.rtm_scope);
  for_each_attribute(netlink_after(body, sizeof header), [&](unsigned short type, NetlinkData value) {
    if (type == RTA_TABLE) table = read_netlink<unsigned>(value);
    if (type == RTA_DST) destination = address_text(AF_INET, value);
    if (type == RTA_GATEWAY) route.gateway = address_text(AF_INET, value);
    if (type == RTA_OIF) device = read_netlink<unsigned>(value);
    if (type == RTA_PREFSRC) route.prefsrc = address_text(AF_INET, value);
    if (type == RTA_PRIORITY) route.metric = read_netlink<int>(value);
  });
  const auto link = tables.links.find(device);
  // Routes over several ways at once have no single interface; nothing here makes or reads such.
  if (header.rtm_type != RTN_UNICAST || table != RT_TABLE_MAIN || link == tables.links.end()) return;
  route.dev = link->second.ifname;
  route.dst = destination.empty()        ? "default"
              : header.rtm_dst_len == 32 ? destination
                                         : fmt::format("{}/{}", destination, header.rtm_dst_len);
  if ((header.rtm_flags & RTNH_F_LINKDOWN) != 0) route.flags.emplace_back("linkdown");
  tables.routes.push_back(std::move(route));
}

}  // namespace

LinkTable read_link_table() {
  constexpr int kMaxTries = 5;  // where something changes all the time, the last answer has to do
  Tables tables;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    tables = {};
    const UniqueFd fd = open_route_socket(SOCK_RAW, 0);
    const auto ask = [&](std::uint16_t type, unsigned char family, auto take) {
      return dump_table(fd, type, family, [&](NetlinkData body) { take(body, tables); });
    };
    const bool links_whole = ask(RTM_GETLINK, AF_UNSPEC, take_link);
    const bool addresses_whole = ask(RTM_GETADDR, AF_UNSPEC, take_address);
    const bool routes_whole = ask(RTM_GETROUTE, AF_INET, take_route);
    if (links_whole && addresses_whole && routes_whole) break;
  }
  LinkTable table{.routes = std::move(tables.routes)};
  for (auto& [index, link] : tables.links) {
    const auto number = tables.masters.find(index);
    const auto master = number == tables.masters.end() ? tables.links.end() : tables.links.find(number->second);
    if (master != tables.links.end()) link.master = master->second.ifname;
  }
  for (auto& [index, link] : tables.links) table.links.push_back(std::move(link));
  return table;
}

}  // namespace yoke::probe
