#include "yoke/probe/nic_counters.h"

#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "yoke/probe/flow_control.h"

namespace yoke::probe {
namespace {

constexpr std::size_t kMaxStatistics = 16'384;
constexpr std::uint64_t kTotalMask = (1ULL << 62) - 1;

std::string attribute_bytes(unsigned short type, std::string_view value) {
  const rtattr header{.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size())), .rta_type = type};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += value;
  bytes.resize(RTA_ALIGN(bytes.size()));
  return bytes;
}

std::string question_text(std::uint16_t family, std::uint8_t command, std::uint32_t sequence,
                          const std::string& given) {
  nlmsghdr header{};
  header.nlmsg_type = family;
  header.nlmsg_flags = NLM_F_REQUEST;
  header.nlmsg_seq = sequence;
  const genlmsghdr what{.cmd = command, .version = 1, .reserved = 0};
  header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + GENL_HDRLEN + given.size());
  std::string question(reinterpret_cast<const char*>(&header), sizeof header);
  return question.append(reinterpret_cast<const char*>(&what), sizeof what).append(given);
}

// One question to a family of generic netlink; the attributes of its answer, empty for an error.
std::string ask_generic(const UniqueFd& socket, std::uint16_t family, std::uint8_t command, const std::string& given,
                        std::uint32_t sequence) {
  const std::string question = question_text(family, command, sequence, given);
  if (send(socket.get(), question.data(), question.size(), 0) < 0) return {};
  for (std::array<char, 8192> answer{};;) {
    const ssize_t size = recv(socket.get(), answer.data(), answer.size(), 0);
    if (size < static_cast<ssize_t>(NLMSG_HDRLEN)) return {};
    const auto head = read_netlink<nlmsghdr>(answer);
    if (head.nlmsg_seq != sequence) continue;  // to a question that took too long
    constexpr std::size_t kHead = NLMSG_HDRLEN + GENL_HDRLEN;
    if (head.nlmsg_type == NLMSG_ERROR || head.nlmsg_len < kHead || head.nlmsg_len > static_cast<std::size_t>(size)) {
      return {};
    }
    return {answer.data() + kHead, answer.data() + head.nlmsg_len};
  }
}

std::uint16_t find_ethtool_family(const UniqueFd& socket) {
  const std::string name(ETHTOOL_GENL_NAME, sizeof ETHTOOL_GENL_NAME);  // with its zero byte
  const std::string answer =
      ask_generic(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute_bytes(CTRL_ATTR_FAMILY_NAME, name), 1);
  std::uint16_t family = 0;
  for_each_attribute(answer, [&](unsigned short type, NetlinkData value) {
    if (type == CTRL_ATTR_FAMILY_ID) family = read_netlink<std::uint16_t>(value);
  });
  return family;
}

bool ask_ethtool(const UniqueFd& socket, const std::string& interface, void* data) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  request.ifr_data = static_cast<char*>(data);
  return ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
}

// A NIC counts the pause frames of the whole link also as those of priority 0.
std::optional<std::int64_t> larger(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

}  // namespace

NicCounters parse_pause_statistics(NetlinkData attributes) {
  NicCounters found;
  for_each_attribute(attributes, [&](unsigned short type, NetlinkData value) {
    if (type != ETHTOOL_A_PAUSE_STATS) return;
    for_each_attribute(value, [&](unsigned short inner, NetlinkData frames) {
      if (frames.size() < sizeof(std::uint64_t)) return;
      const auto count = static_cast<std::int64_t>(read_netlink<std::uint64_t>(frames) & kTotalMask);
      if (inner == ETHTOOL_A_PAUSE_STAT_RX_FRAMES) found.pause_received = count;
      if (inner == ETHTOOL_A_PAUSE_STAT_TX_FRAMES) found.pause_sent = count;
    });
  });
  return found;
}

// mlx5's name (the kernel's Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst). It counts at
// the port, so both rails of a port show the same.
std::optional<std::size_t> find_discards(std::span<const char> names) {
  for (std::size_t i = 0; (i + 1) * ETH_GSTRING_LEN <= names.size(); ++i) {
    const char* const text = names.data() + i * ETH_GSTRING_LEN;
    if (std::string_view(text, strnlen(text, ETH_GSTRING_LEN)) == "rx_discards_phy") return i;
  }
  return std::nullopt;
}

NicCounterReader::NicCounterReader()
    : dcb_(open_flow_control_socket()),
      generic_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)),
      any_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  if (!generic_) return;
  constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(generic_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ethtool_family_ = find_ethtool_family(generic_);
}

NicCounters NicCounterReader::ask_pause_statistics(const std::string& interface) {
  if (ethtool_family_ == 0) return {};
  const std::uint32_t flags = ETHTOOL_FLAG_STATS;
  const std::string header =
      attribute_bytes(ETHTOOL_A_HEADER_DEV_NAME, {interface.c_str(), interface.size() + 1}) +
      attribute_bytes(ETHTOOL_A_HEADER_FLAGS, {reinterpret_cast<const char*>(&flags), sizeof flags});
  return parse_pause_statistics(ask_generic(generic_, ethtool_family_, ETHTOOL_MSG_PAUSE_GET,
                                            attribute_bytes(ETHTOOL_A_PAUSE_HEADER | NLA_F_NESTED, header), ++asked_));
}

const NicCounterReader::DiscardPlace& NicCounterReader::place_of(const std::string& interface) {
  const auto [entry, is_new] = places_.try_emplace(interface);
  if (!is_new) return entry->second;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!ask_ethtool(any_, interface, &driver) || driver.n_stats == 0 || driver.n_stats > kMaxStatistics) {
    return entry->second;
  }
  const std::size_t bytes = std::size_t{driver.n_stats} * ETH_GSTRING_LEN;
  std::vector<char> buffer(sizeof(ethtool_gstrings) + bytes);
  auto* const names = reinterpret_cast<ethtool_gstrings*>(buffer.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = driver.n_stats;
  if (!ask_ethtool(any_, interface, names)) return entry->second;
  if (const auto place = find_discards(std::span(buffer).subspan(sizeof(ethtool_gstrings), bytes))) {
    entry->second = {.statistics = driver.n_stats, .place = *place};
  }
  return entry->second;
}

std::optional<std::int64_t> NicCounterReader::ask_discards(const std::string& interface) {
  const DiscardPlace place = place_of(interface);
  if (place.statistics == 0) return std::nullopt;
  std::vector<std::uint64_t> buffer(place.statistics + sizeof(ethtool_stats) / sizeof(std::uint64_t) + 1);
  auto* const statistics = reinterpret_cast<ethtool_stats*>(buffer.data());
  statistics->cmd = ETHTOOL_GSTATS;
  statistics->n_stats = static_cast<__u32>(place.statistics);
  // A driver that was loaded again may count something else: the kernel then says another number.
  if (!ask_ethtool(any_, interface, statistics) || statistics->n_stats != place.statistics) {
    places_.erase(interface);
    return std::nullopt;
  }
  return static_cast<std::int64_t>(statistics->data[place.place] & kTotalMask);
}

NicCounters NicCounterReader::read(const std::string& interface) {
  if (interface.size() >= IFNAMSIZ) return {};
  NicCounters found = ask_pause_statistics(interface);
  if (dcb_) {
    const FlowControl priorities = ask_flow_control(dcb_, interface);
    found.pause_received = larger(found.pause_received, priorities.pause_received);
    found.pause_sent = larger(found.pause_sent, priorities.pause_sent);
  }
  found.discards_received = ask_discards(interface);
  return found;
}

void read_nic_counters(LinkTable& table) {
  NicCounterReader reader;
  for (LinkEntry& link : table.links) {
    if (!link.parentdev || link.link_type != "ether") continue;
    const NicCounters found = reader.read(link.ifname);
    link.pause_received = found.pause_received;
    link.pause_sent = found.pause_sent;
    link.discards_received = found.discards_received;
  }
}

}  // namespace yoke::probe
