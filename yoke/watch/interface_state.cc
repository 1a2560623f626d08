#include "yoke/watch/interface_state.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

namespace yoke::watch {
namespace {

constexpr std::size_t kMaxStatistics = 16'384;

bool ask_interface(int socket, const std::string& interface, unsigned long request, ifreq& answer, void* data) {
  answer = {};
  std::strncpy(answer.ifr_name, interface.c_str(), sizeof answer.ifr_name - 1);
  if (data) answer.ifr_data = static_cast<char*>(data);
  return ioctl(socket, request, &answer) == 0;
}

}  // namespace

InterfaceCalls::InterfaceCalls() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

void InterfaceCalls::read_state(RailSample& rail) const {
  ifreq answer{};
  if (!ask_interface(socket_.get(), rail.interface, SIOCGIFFLAGS, answer, nullptr)) return;
  rail.up = (answer.ifr_flags & IFF_UP) != 0;
  rail.carrier = rail.up && (answer.ifr_flags & IFF_RUNNING) != 0;
}

const InterfaceCalls::PausePlaces& InterfaceCalls::places_of(const std::string& interface) {
  const auto [entry, is_new] = places_.try_emplace(interface);
  if (!is_new) return entry->second;
  PausePlaces& places = entry->second;
  ifreq answer{};
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!ask_interface(socket_.get(), interface, SIOCETHTOOL, answer, &driver) || driver.n_stats == 0 ||
      driver.n_stats > kMaxStatistics) {
    return places;
  }
  std::vector<char> buffer(sizeof(ethtool_gstrings) + std::size_t{driver.n_stats} * ETH_GSTRING_LEN);
  auto* const names = reinterpret_cast<ethtool_gstrings*>(buffer.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = driver.n_stats;
  if (!ask_interface(socket_.get(), interface, SIOCETHTOOL, answer, names)) return places;
  // "rx_pause_ctrl_phy", "tx_prio3_pause": frames. Durations and transitions are something else.
  for (std::size_t i = 0; i < driver.n_stats; ++i) {
    const char* const text = reinterpret_cast<const char*>(names->data) + i * ETH_GSTRING_LEN;
    const std::string_view name(text, strnlen(text, ETH_GSTRING_LEN));
    if (!name.ends_with("_pause") && !name.ends_with("pause_ctrl_phy")) continue;
    if (name.starts_with("rx_")) places.received.push_back(i);
    if (name.starts_with("tx_")) places.sent.push_back(i);
  }
  if (!places.received.empty() || !places.sent.empty()) places.statistics = driver.n_stats;
  return places;
}

void InterfaceCalls::read_pauses(RailSample& rail) {
  const PausePlaces& places = places_of(rail.interface);
  if (places.statistics == 0) return;
  std::vector<std::uint64_t> buffer(places.statistics + sizeof(ethtool_stats) / sizeof(std::uint64_t) + 1);
  auto* const statistics = reinterpret_cast<ethtool_stats*>(buffer.data());
  statistics->cmd = ETHTOOL_GSTATS;
  statistics->n_stats = static_cast<__u32>(places.statistics);
  ifreq answer{};
  // A driver that was loaded again may count something else: the kernel then says another number.
  if (!ask_interface(socket_.get(), rail.interface, SIOCETHTOOL, answer, statistics) ||
      statistics->n_stats != places.statistics) {
    places_.erase(rail.interface);
    return;
  }
  const auto sum = [&](const std::vector<std::size_t>& of) -> Total {
    if (of.empty()) return std::nullopt;
    std::int64_t total = 0;
    for (const std::size_t i : of) total += static_cast<std::int64_t>(statistics->data[i] & ((1ULL << 62) - 1));
    return total;
  };
  rail.pause_received = sum(places.received);
  rail.pause_sent = sum(places.sent);
}

}  // namespace yoke::watch
