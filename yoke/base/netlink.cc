#include "yoke/base/netlink.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "yoke/base/error.h"

namespace yoke {
namespace {

void ask_for_all(const UniqueFd& fd, std::uint16_t type, unsigned char family) {
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } request{};
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = family;
  if (send(fd.get(), &request, request.header.nlmsg_len, 0) < 0) {
    throw system_error(errno, "cannot ask the kernel for its network tables");
  }
}

}  // namespace

NetlinkData netlink_after(NetlinkData data, std::size_t size) {
  const std::size_t aligned = (size + 3) & ~std::size_t{3};
  return data.subspan(std::min(aligned, data.size()));
}

std::string netlink_text(NetlinkData data) { return {data.data(), strnlen(data.data(), data.size())}; }

UniqueFd open_route_socket(int type, unsigned groups) {
  UniqueFd fd(socket(AF_NETLINK, type | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) throw system_error(errno, "cannot open a route socket");
  sockaddr_nl address{.nl_family = AF_NETLINK, .nl_groups = groups};
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw system_error(errno, "cannot bind a route socket");
  }
  return fd;
}

bool dump_table(const UniqueFd& fd, std::uint16_t type, unsigned char family,
                const std::function<void(NetlinkData)>& take) {
  constexpr std::string_view kWhat = "cannot read the kernel's network tables";
  ask_for_all(fd, type, family);
  bool whole = true;
  for (;;) {
    char buffer[1 << 15];  // as large as the kernel makes a part of a dump
    const ssize_t count = recv(fd.get(), buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, kWhat);
    for (NetlinkData data(buffer, static_cast<std::size_t>(count)); data.size() >= sizeof(nlmsghdr);) {
      const auto header = read_netlink<nlmsghdr>(data);
      if (header.nlmsg_len < sizeof header || header.nlmsg_len > data.size()) {
        throw Error(ErrorCode::kInternal, "the kernel's answer about its network tables is cut short");
      }
      const NetlinkData body = netlink_after(data.first(header.nlmsg_len), sizeof header);
      if (header.nlmsg_flags & NLM_F_DUMP_INTR) whole = false;
      if (header.nlmsg_type == NLMSG_DONE) return whole;
      if (header.nlmsg_type == NLMSG_ERROR) throw system_error(-read_netlink<nlmsgerr>(body).error, kWhat);
      take(body);
      data = netlink_after(data, header.nlmsg_len);
    }
  }
}

void for_each_attribute(NetlinkData data, const std::function<void(unsigned short type, NetlinkData value)>& take) {
  while (data.size() >= sizeof(rtattr)) {
    const auto attribute = read_netlink<rtattr>(data);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > data.size()) return;
    // The two highest bits are flags (nested, byte order), not part of the type.
    take(attribute.rta_type & NLA_TYPE_MASK, netlink_after(data.first(attribute.rta_len), sizeof attribute));
    data = netlink_after(data, attribute.rta_len);
  }
}

}  // namespace yoke
