#include "yoke/serve/link_gauges.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>

#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::serve {
namespace {

// Asked of the kernel in the calling thread's network namespace, which files below /sys need not follow.
bool has_carrier(const std::string& interface) {
  const UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq asked{};
  std::strncpy(asked.ifr_name, interface.c_str(), sizeof asked.ifr_name - 1);
  if (!any || ioctl(any.get(), SIOCGIFFLAGS, &asked) != 0) return false;
  return (asked.ifr_flags & IFF_UP) != 0 && (asked.ifr_flags & IFF_RUNNING) != 0;
}

std::int64_t counted(const FileTree& machine, const std::string& interface, const char* counter) {
  const std::string text =
      machine.read_trimmed(fmt::format("/sys/class/net/{}/statistics/{}", interface, counter)).value_or("0");
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string rail_name(std::size_t place) { return std::string(1, static_cast<char>('A' + place % 26)); }

std::vector<LinkGauge> link_gauges(const spec::ClusterNode& head, const FileTree& machine) {
  std::vector<LinkGauge> links;
  for (std::size_t i = 0; i < head.rails.size(); ++i) {
    const std::string& interface = head.rails[i].interface;
    links.push_back({.node = head.name,
                     .rail = rail_name(i),
                     .interface = interface,
                     .is_up = has_carrier(interface),
                     .sent_bytes = counted(machine, interface, "tx_bytes"),
                     .received_bytes = counted(machine, interface, "rx_bytes")});
  }
  return links;
}

std::vector<RankGauge> rank_gauges(const HubStatus& status) {
  std::vector<RankGauge> ranks;
  for (std::size_t i = 0; status.ready && i < status.ranks.size(); ++i) {
    const engine::EngineReady& ready = *status.ready;
    ranks.push_back({.rank = static_cast<int>(i),
                     .node = i < ready.nodes.size() ? ready.nodes[i] : "",
                     .is_up = status.ranks[i].is_up,
                     .restarts = status.ranks[i].restarts,
                     .cache_bytes = static_cast<std::int64_t>(ready.cache_each.value)});
    if (i < ready.weights_each.size()) {
      ranks.back().weights_bytes = static_cast<std::int64_t>(ready.weights_each[i].value);
    }
  }
  return ranks;
}

}  // namespace yoke::serve
