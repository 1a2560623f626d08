#include "yoke/link/beacon_exchange.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"

namespace yoke::link {
namespace {

// Thirty in the usual three seconds: a lossy or late end is still heard, and the link does not notice.
constexpr Seconds kInterval{0.1};
constexpr std::size_t kMaxFrame = 2048;
constexpr std::size_t kMaxHeard = 4096;  // of one run: a flood of forged beacons must not fill the memory

struct Port {
  const Beacon* own;
  std::string payload;
  UniqueFd fd;
  sockaddr_ll everybody{};
};

// A cooked packet socket: the kernel writes and strips the Ethernet header, and tells who sent.
Port open_port(const Beacon& own, unsigned index) {
  Port port{.own = &own, .payload = encode_beacon(own), .fd = {}};
  // Opened with the EtherType it would receive from every interface until it is bound; bind() sets the EtherType.
  port.fd = UniqueFd(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!port.fd) {
    throw system_error(errno, "cannot open a raw socket for beacons",
                       "beacons need root: run as root, or let sudo run without a password");
  }
  port.everybody.sll_family = AF_PACKET;
  port.everybody.sll_protocol = htons(kBeaconEtherType);
  port.everybody.sll_ifindex = static_cast<int>(index);
  port.everybody.sll_halen = ETH_ALEN;
  if (bind(port.fd.get(), reinterpret_cast<const sockaddr*>(&port.everybody), sizeof port.everybody) != 0) {
    throw system_error(errno, fmt::format("cannot listen on {}", own.interface));
  }
  std::memset(port.everybody.sll_addr, 0xFF, ETH_ALEN);
  return port;
}

// A failure is the interface's state (down, gone, its queue full), which the facts tell better.
void send_beacon(const Port& port) {
  const auto ignored = sendto(port.fd.get(), port.payload.data(), port.payload.size(), 0,
                              reinterpret_cast<const sockaddr*>(&port.everybody), sizeof port.everybody);
  static_cast<void>(ignored);
}

std::string mac_of(const sockaddr_ll& sender) {
  const auto& a = sender.sll_addr;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", a[0], a[1], a[2], a[3], a[4], a[5]);
}

// The frame that waits on a port, if there is one and it is a beacon. Beacons that name another sender than the frame
// does are none. One frame a call, so that a flood on one port neither hides the others nor the end of the time.
std::optional<HeardBeacon> receive_beacon(const Port& port) {
  std::array<char, kMaxFrame> frame;
  sockaddr_ll sender{};
  socklen_t size = sizeof sender;
  const ssize_t count =
      recvfrom(port.fd.get(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&sender), &size);
  if (count < 0 || sender.sll_pkttype == PACKET_OUTGOING) return std::nullopt;  // none, or the interface went down
  const auto beacon = try_to([&] { return parse_beacon({frame.data(), static_cast<std::size_t>(count)}); });
  if (!beacon || beacon->mac != mac_of(sender)) return std::nullopt;
  return HeardBeacon{port.own->interface, *beacon};
}

}  // namespace

std::vector<HeardBeacon> exchange_beacons(const std::vector<Beacon>& own, Seconds time,
                                          const std::function<void(const HeardBeacon&)>& on_heard) {
  std::vector<Port> ports;
  for (const Beacon& beacon : own) {
    if (const unsigned index = if_nametoindex(beacon.interface.c_str())) ports.push_back(open_port(beacon, index));
  }
  std::vector<pollfd> waiting;
  for (const Port& port : ports) waiting.push_back({port.fd.get(), POLLIN, 0});
  std::vector<HeardBeacon> heard;
  const Deadline end = Deadline::after(time);
  while (!end.expired()) {
    throw_if_interrupted();
    for (const Port& port : ports) send_beacon(port);
    const Deadline next = Deadline::after(kInterval);
    while (!next.expired() && !end.expired()) {
      poll(waiting.data(), waiting.size(), std::min(next.poll_timeout_ms(), end.poll_timeout_ms()));
      for (const Port& port : ports) {
        const auto one = receive_beacon(port);
        if (!one || heard.size() >= kMaxHeard || std::find(heard.begin(), heard.end(), *one) != heard.end()) continue;
        heard.push_back(*one);
        if (on_heard) on_heard(*one);
      }
    }
  }
  return heard;
}

}  // namespace yoke::link
