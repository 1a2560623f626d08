#include "yoke/probe/route_query.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke::probe {
namespace {

struct RouteRequest {
  nlmsghdr header{};
  rtmsg body{};
  char attributes[2 * RTA_SPACE(sizeof(std::uint32_t))] = {};
};

void add_address(RouteRequest& request, unsigned short type, Ipv4 address) {
  const std::uint32_t value = htonl(address.value);
  const rtattr attribute{.rta_len = RTA_LENGTH(sizeof value), .rta_type = type};
  char* place = request.attributes + (request.header.nlmsg_len - NLMSG_LENGTH(sizeof request.body));
  std::memcpy(place, &attribute, sizeof attribute);
  std::memcpy(place + RTA_LENGTH(0), &value, sizeof value);
  request.header.nlmsg_len += RTA_SPACE(sizeof value);
}

RouteRequest request_for(Ipv4 to, std::optional<Ipv4> from) {
  RouteRequest request;
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.rtm_family = AF_INET;
  request.body.rtm_dst_len = 32;
  // The route that matches, with all of its next hops, not the one that this packet happens to take.
  request.body.rtm_flags = RTM_F_FIB_MATCH;
  add_address(request, RTA_DST, to);
  if (from) {
    request.body.rtm_src_len = 32;
    add_address(request, RTA_SRC, *from);
  }
  return request;
}

void add_hops(NetlinkData hops, std::vector<unsigned>& devices) {
  while (hops.size() >= sizeof(rtnexthop)) {
    const auto hop = read_netlink<rtnexthop>(hops);
    if (hop.rtnh_len < sizeof hop) return;
    devices.push_back(static_cast<unsigned>(hop.rtnh_ifindex));
    hops = netlink_after(hops, hop.rtnh_len);
  }
}

}  // namespace

std::vector<unsigned> route_devices(NetlinkData body) {
  std::vector<unsigned> devices;
  for_each_attribute(netlink_after(body, sizeof(rtmsg)), [&](unsigned short type, NetlinkData value) {
    if (type == RTA_OIF) devices.push_back(read_netlink<unsigned>(value));
    if (type == RTA_MULTIPATH) add_hops(value, devices);
  });
  return devices;
}

std::vector<std::string> ask_route(Ipv4 to, std::optional<Ipv4> from) {
  constexpr std::string_view kWhat = "cannot ask the kernel for a route";
  const UniqueFd fd = open_route_socket(SOCK_RAW, 0);
  const RouteRequest request = request_for(to, from);
  if (send(fd.get(), &request, request.header.nlmsg_len, 0) < 0) throw system_error(errno, kWhat);
  char buffer[1 << 14];
  ssize_t count = 0;
  do {
    count = recv(fd.get(), buffer, sizeof buffer, 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) throw system_error(errno, kWhat);
  const NetlinkData answer(buffer, static_cast<std::size_t>(count));
  const auto header = read_netlink<nlmsghdr>(answer);
  if (header.nlmsg_type == NLMSG_ERROR) return {};  // unreachable, prohibited, a black hole: no way, by any name
  std::vector<std::string> names;
  for (const unsigned device : route_devices(netlink_after(answer, sizeof header))) {
    char name[IF_NAMESIZE] = "";
    if (!if_indextoname(device, name)) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

}  // namespace yoke::probe
