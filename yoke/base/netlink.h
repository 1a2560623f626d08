// Dumps of the kernel's network tables by rtnetlink (rtnetlink(7)): one message for each link, address or route of the
// calling thread's network namespace. Raw, as a dump and its attributes are all that is needed: libnl would be two more
// archives to link for a hundred lines.
//
//   const UniqueFd fd = open_route_socket(SOCK_RAW, 0);
//   const bool whole = dump_table(fd, RTM_GETLINK, AF_UNSPEC, [&](NetlinkData body) { … });
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include "yoke/base/files.h"

namespace yoke {

using NetlinkData = std::span<const char>;

// `groups` of events to report; 0 for questions only.
UniqueFd open_route_socket(int type, unsigned groups);

// Asks for a whole table (RTM_GETLINK, …) and calls for the body of each message of the answer. False: something
// changed meanwhile, and the answer may be torn.
[[nodiscard]] bool dump_table(const UniqueFd& fd, std::uint16_t type, unsigned char family,
                              const std::function<void(NetlinkData body)>& take);

// The attributes behind a message's fixed part (or nested in another attribute); a torn one ends the list.
void for_each_attribute(NetlinkData data, const std::function<void(unsigned short type, NetlinkData value)>& take);

// What begins the data; zeros where it is shorter, as an older kernel's structs are.
template <class T>
T read_netlink(NetlinkData data) {
  T value{};
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof value));
  return value;
}

// What follows the first `size` bytes. The kernel aligns everything by four bytes (NLMSG_ALIGNTO, RTA_ALIGNTO).
NetlinkData netlink_after(NetlinkData data, std::size_t size);
std::string netlink_text(NetlinkData data);  // up to its zero byte

}  // namespace yoke
