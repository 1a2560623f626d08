#include "yoke/lab/watcher_netlink.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "yoke/base/error.h"

namespace yoke {
namespace {

using Data = std::span<const char>;

// The kernel aligns everything by four bytes (NLMSG_ALIGNTO, RTA_ALIGNTO).
std::size_t align(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

// What begins the data; zeros where it is shorter, as an older kernel's structs are.
template <class T>
T read_as(Data data) {
  T value{};
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof value));
  return value;
}

Data rest_after(Data data, std::size_t size) { return data.subspan(std::min(align(size), data.size())); }

UniqueFd open_route_socket(int type, unsigned groups) {
  UniqueFd fd(socket(AF_NETLINK, type | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) throw system_error(errno, "cannot open a route socket");
  sockaddr_nl address{.nl_family = AF_NETLINK, .nl_groups = groups};
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw system_error(errno, "cannot bind a route socket");
  }
  return fd;
}

void ask_for_all(const UniqueFd& fd, std::uint16_t type) {
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } request{};
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = AF_UNSPEC;
  if (send(fd.get(), &request, request.header.nlmsg_len, 0) < 0) throw system_error(errno, "cannot ask for links");
}

// Calls for each message of the answer. False: something changed meanwhile, and the answer may be torn.
bool receive_all(const UniqueFd& fd, const std::function<void(Data)>& take) {
  bool whole = true;
  for (;;) {
    char buffer[1 << 15];  // as large as the kernel makes a part of a dump
    const ssize_t count = recv(fd.get(), buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "cannot read links");
    for (Data data(buffer, static_cast<std::size_t>(count)); data.size() >= sizeof(nlmsghdr);) {
      const auto header = read_as<nlmsghdr>(data);
      if (header.nlmsg_len < sizeof header || header.nlmsg_len > data.size()) {
        throw Error(ErrorCode::kInternal, "the kernel's answer about links is cut short");
      }
      const Data body = rest_after(data.first(header.nlmsg_len), sizeof header);
      if (header.nlmsg_flags & NLM_F_DUMP_INTR) whole = false;
      if (header.nlmsg_type == NLMSG_DONE) return whole;
      if (header.nlmsg_type == NLMSG_ERROR) throw system_error(-read_as<nlmsgerr>(body).error, "cannot read links");
      take(body);
      data = rest_after(data, header.nlmsg_len);
    }
  }
}

void for_each_attribute(Data data, const std::function<void(unsigned short type, Data value)>& take) {
  while (data.size() >= sizeof(rtattr)) {
    const auto attribute = read_as<rtattr>(data);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > data.size()) return;
    take(attribute.rta_type, rest_after(data.first(attribute.rta_len), sizeof attribute));
    data = rest_after(data, attribute.rta_len);
  }
}

InterfaceState parse_link(Data body) {
  const auto link = read_as<ifinfomsg>(body);
  // IFF_LOWER_UP is the carrier itself; IFF_RUNNING follows it up to a second later.
  InterfaceState state{.up = (link.ifi_flags & IFF_UP) != 0, .carrier = (link.ifi_flags & IFF_LOWER_UP) != 0};
  for_each_attribute(rest_after(body, sizeof link), [&](unsigned short type, Data value) {
    if (type == IFLA_IFNAME) state.name = std::string(value.data(), strnlen(value.data(), value.size()));
    if (type == IFLA_ADDRESS && value.size() == sizeof(Mac)) state.mac = read_as<Mac>(value);
    if (type == IFLA_STATS64) {
      const auto counted = read_as<rtnl_link_stats64>(value);
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
  const auto header = read_as<ifaddrmsg>(body);
  const auto state = states.find(header.ifa_index);
  if (state == states.end()) return;
  // On a point-to-point link IFA_ADDRESS is the peer's, and IFA_LOCAL ours; IPv6 has IFA_ADDRESS alone otherwise.
  Data own;
  for_each_attribute(rest_after(body, sizeof header), [&](unsigned short type, Data value) {
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && own.empty())) own = value;
  });
  if (header.ifa_family == AF_INET && own.size() == 4) {
    state->second.ipv4.push_back({ntohl(read_as<std::uint32_t>(own))});
  } else if (header.ifa_family == AF_INET6 && own.size() == sizeof(Gid)) {
    state->second.ipv6.push_back(read_as<Gid>(own));
  }
}

}  // namespace

std::vector<InterfaceState> read_interfaces() {
  constexpr int kTriesMost = 5;  // when something changes all the time, the last answer has to do: another pass follows
  std::map<unsigned, InterfaceState> states;
  for (int tries = 0; tries < kTriesMost; ++tries) {
    states.clear();
    const UniqueFd fd = open_route_socket(SOCK_RAW, 0);
    ask_for_all(fd, RTM_GETLINK);
    const bool links_whole = receive_all(fd, [&](Data body) {
      states.emplace(static_cast<unsigned>(read_as<ifinfomsg>(body).ifi_index), parse_link(body));
    });
    ask_for_all(fd, RTM_GETADDR);
    const bool addresses_whole = receive_all(fd, [&](Data body) { add_address(body, states); });
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
  // What they say does not matter, nor that some were lost (ENOBUFS): everything is read anew.
  char buffer[1 << 15];
  while (recv(events.get(), buffer, sizeof buffer, 0) >= 0 || errno == EINTR || errno == ENOBUFS) {
  }
}

}  // namespace yoke
