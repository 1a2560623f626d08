#include "yoke/lab/watcher_netlink.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>

#include "yoke/base/netlink.h"

namespace yoke::lab {
namespace {

using Data = NetlinkData;

InterfaceState parse_link(Data body) {
  const auto link = read_netlink<ifinfomsg>(body);
  // IFF_LOWER_UP is the carrier itself; IFF_RUNNING follows it up to a second later.
  InterfaceState state{.up = (link.ifi_flags & IFF_UP) != 0, .carrier = (link.ifi_flags & IFF_LOWER_UP) != 0};
  for_each_attribute(netlink_after(body, sizeof link), [&](unsigned short type, Data value) {
    if (type == IFLA_IFNAME) state.name = netlink_text(value);
    if (type == IFLA_ADDRESS && value.size() == sizeof(Mac)) state.mac = read_netlink<Mac>(value);
    if (type == IFLA_STATS64) {
      const auto counted = read_netlink<rtnl_link_stats64>(value);
      state.counters = {.rx_bytes = counted.rx_bytes,
                        .tx_bytes = counted.tx_bytes,
                        .rx_packets = counted.rx_packets,
                        .tx_packets = counted.tx_packets,
                        .rx_errors = counted.rx_errors,
                        .tx_dropped = counted.tx_dropped};
    }
  });
  return state;
}

void add_address(Data body, std::map<unsigned, InterfaceState>& states) {
  const auto header = read_netlink<ifaddrmsg>(body);
  const auto state = states.find(header.ifa_index);
  if (state == states.end()) return;
  // On a point-to-point link IFA_ADDRESS is the peer's, and IFA_LOCAL ours; IPv6 has IFA_ADDRESS alone otherwise.
  Data own;
  for_each_attribute(netlink_after(body, sizeof header), [&](unsigned short type, Data value) {
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && own.empty())) own = value;
  });
  if (header.ifa_family == AF_INET && own.size() == 4) {
    state->second.ipv4.push_back({ntohl(read_netlink<std::uint32_t>(own))});
  } else if (header.ifa_family == AF_INET6 && own.size() == sizeof(Gid)) {
    state->second.ipv6.push_back(read_netlink<Gid>(own));
  }
}

}  // namespace

std::vector<InterfaceState> read_interfaces() {
  constexpr int kMaxTries = 5;  // when something changes all the time, the last answer has to do: another pass follows
  std::map<unsigned, InterfaceState> states;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    states.clear();
    const UniqueFd fd = open_route_socket(SOCK_RAW, 0);
    const bool links_whole = dump_table(fd, RTM_GETLINK, AF_UNSPEC, [&](Data body) {
      states.emplace(static_cast<unsigned>(read_netlink<ifinfomsg>(body).ifi_index), parse_link(body));
    });
    const bool addresses_whole = dump_table(fd, RTM_GETADDR, AF_UNSPEC, [&](Data body) { add_address(body, states); });
    if (links_whole && addresses_whole) break;
  }
  std::vector<InterfaceState> interfaces;
  for (auto& [index, state] : states) interfaces.push_back(std::move(state));
  return interfaces;
}

UniqueFd open_link_events() {
  return open_route_socket(SOCK_RAW | SOCK_NONBLOCK, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
}

void drain_link_events(const UniqueFd& events) {
  // What they say does not matter, nor that some were lost (ENOBUFS): everything is read again.
  char buffer[1 << 15];
  while (recv(events.get(), buffer, sizeof buffer, 0) >= 0 || errno == EINTR || errno == ENOBUFS) {
  }
}

}  // namespace yoke::lab
