#include "yoke/link/beacon_exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"

namespace yoke::link {
namespace {

using namespace literals;
using testing::IsEmpty;

void ip(const std::string& words) {
  std::vector<std::string> argv = {"ip"};
  for (std::string& word : split(words, ' ')) argv.push_back(std::move(word));
  run_or_throw({.argv = argv, .timeout = 10_s});
}

Beacon beacon_of(const std::string& interface, const std::string& mac) {
  return {.node = "0123456789abcdef0123456789abcdef",
          .hostname = "spark-1",
          .interface = interface,
          .mac = mac,
          .rail = "A",
          .version = "0.1.0"};
}

// Sends a beacon as fast as the interface takes it.
void flood(const std::stop_token& stop, const Beacon& beacon) {
  const UniqueFd fd(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string payload = encode_beacon(beacon);
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(kBeaconEtherType);
  to.sll_ifindex = static_cast<int>(if_nametoindex(beacon.interface.c_str()));
  to.sll_halen = ETH_ALEN;
  std::memset(to.sll_addr, 0xFF, ETH_ALEN);
  while (!stop.stop_requested()) {
    (void)!sendto(fd.get(), payload.data(), payload.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
}

// In a network namespace that belongs to this thread alone.
void expect_beacons_only_where_they_come() {
  ip("link add cabled type veth peer name peer address 02:00:00:00:00:01");
  ip("link add free type veth peer name free-peer");
  for (const char* interface : {"cabled", "peer", "free", "free-peer"}) ip(fmt::format("link set {} up", interface));
  const Beacon cabled = beacon_of("cabled", "02:00:00:00:00:02");
  const Beacon free = beacon_of("free", "02:00:00:00:00:03");
  const std::jthread sender(flood, beacon_of("peer", "02:00:00:00:00:01"));
  EXPECT_EQ(exchange_beacons({cabled}, 0.2_s).size(), 1U);
  for (int round = 0; round < 50; ++round) ASSERT_THAT(exchange_beacons({free}, 0.001_s), IsEmpty()) << round;
}

TEST(BeaconExchange, AFrameIsHeardOnlyOnTheInterfaceOnWhichItComes) {
  std::string reason;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      reason = fmt::format("no network namespace: {}", std::strerror(errno));
      return;
    }
    try {
      expect_beacons_only_where_they_come();
    } catch (const Error& error) {
      ADD_FAILURE() << error.message();
    }
  }).join();
  if (!reason.empty()) GTEST_SKIP() << reason;
}

}  // namespace
}  // namespace yoke::link
