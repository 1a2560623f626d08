#include "yoke/probe/flow_control.h"

#include <fmt/format.h>
#include <linux/dcbnl.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "yoke/base/netlink.h"

namespace yoke::probe {
namespace {

constexpr __u64 kCounterMask = (1ULL << 48) - 1;  // eight of these add up to what a signed number holds

struct Question {
  nlmsghdr header{};
  dcbmsg message{};
  std::array<char, 64> attributes{};
};

Question question_of(const std::string& interface) {
  Question question;
  rtattr attribute{.rta_len = static_cast<unsigned short>(RTA_LENGTH(interface.size() + 1)),
                   .rta_type = DCB_ATTR_IFNAME};
  std::memcpy(question.attributes.data(), &attribute, sizeof attribute);
  std::memcpy(question.attributes.data() + sizeof attribute, interface.c_str(), interface.size() + 1);
  question.message.dcb_family = AF_UNSPEC;
  question.message.cmd = DCB_CMD_IEEE_GET;
  question.header.nlmsg_len =
      static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof question.message) + RTA_ALIGN(attribute.rta_len));
  question.header.nlmsg_type = RTM_GETDCB;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  return question;
}

std::string priorities(unsigned char enabled) {
  std::string text;
  for (int priority = 0; priority < IEEE_8021QAZ_MAX_TCS; ++priority) {
    if ((enabled >> priority & 1) != 0) text += (text.empty() ? "" : ",") + std::to_string(priority);
  }
  return text.empty() ? "none" : text;
}

// Its app table: a driver that sorts by DSCP lists each value with its priority, and one that sorts by VLAN tag none.
std::string dscp_priorities(NetlinkData table) {
  std::string differing;
  bool has_any = false;
  for_each_attribute(table, [&](unsigned short type, NetlinkData value) {
    const auto app = read_netlink<dcb_app>(value);
    if ((type & NLA_TYPE_MASK) != DCB_ATTR_IEEE_APP || app.selector != IEEE_8021QAZ_APP_SEL_DSCP) return;
    if (app.protocol > 63 || app.priority >= IEEE_8021QAZ_MAX_TCS) return;
    has_any = true;
    if (app.priority == app.protocol / 8) return;
    differing += fmt::format("{}{}:{}", differing.empty() ? "" : ",", app.protocol, app.priority);
  });
  return !has_any ? "none" : differing.empty() ? "usual" : differing;
}

// A driver that does not count them leaves zeros there.
std::optional<std::int64_t> frames_of(const __u64 (&counts)[IEEE_8021QAZ_MAX_TCS]) {
  std::uint64_t sum = 0;
  for (const __u64 count : counts) sum += count & kCounterMask;
  return sum > 0 ? std::optional(static_cast<std::int64_t>(sum)) : std::nullopt;
}

}  // namespace

FlowControl ask_flow_control(const UniqueFd& fd, const std::string& interface) {
  if (interface.size() >= IFNAMSIZ) return {};
  const Question question = question_of(interface);
  if (send(fd.get(), &question, question.header.nlmsg_len, 0) < 0) return {};
  std::array<char, 8192> answer{};
  const ssize_t size = recv(fd.get(), answer.data(), answer.size(), 0);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return {};
  const auto header = read_netlink<nlmsghdr>(answer);
  if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_len > static_cast<std::size_t>(size)) return {};
  const NetlinkData body = netlink_after(NetlinkData(answer).first(header.nlmsg_len), sizeof(nlmsghdr));
  return parse_flow_control(netlink_after(body, sizeof(dcbmsg)));
}

FlowControl parse_flow_control(NetlinkData attributes) {
  FlowControl found;
  for_each_attribute(attributes, [&](unsigned short type, NetlinkData value) {
    if ((type & NLA_TYPE_MASK) != DCB_ATTR_IEEE) return;
    for_each_attribute(value, [&](unsigned short inner, NetlinkData data) {
      if ((inner & NLA_TYPE_MASK) == DCB_ATTR_IEEE_PFC && data.size() >= 2) {
        const auto pfc = read_netlink<ieee_pfc>(data);
        found.priorities = priorities(pfc.pfc_en);
        found.pause_received = frames_of(pfc.indications);
        found.pause_sent = frames_of(pfc.requests);
      }
      if ((inner & NLA_TYPE_MASK) == DCB_ATTR_IEEE_APP_TABLE) found.dscp = dscp_priorities(data);
    });
  });
  return found;
}

UniqueFd open_flow_control_socket() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  return fd;
}

void read_flow_control(LinkTable& table) {
  const UniqueFd fd = open_flow_control_socket();
  if (!fd) return;
  for (LinkEntry& link : table.links) {
    const bool is_physical = link.parentdev && link.link_type == "ether" && link.ifname.size() < 32;
    if (!is_physical) continue;
    FlowControl found = ask_flow_control(fd, link.ifname);
    link.flow_control = std::move(found.priorities);
    link.dscp = std::move(found.dscp);
  }
}

}  // namespace yoke::probe
