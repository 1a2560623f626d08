// <linux/tcp.h> knows more of tcp_info than <netinet/tcp.h>, beside which it cannot stand.
#include "yoke/comm/direct/rail_use.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "yoke/comm/direct/group.h"

namespace yoke::comm::direct {
namespace {

constexpr double kMicrosecond = 1e-6;

template <class Ask>
std::string address_by(const Ask& ask) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN] = {};
  if (ask(reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET) return "";
  return inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr ? text : "";
}

}  // namespace

void count_rail_use(const Socket& socket, spec::RailUse& use) {
  use.local = address_by([&](sockaddr* to, socklen_t* size) { return getsockname(socket.fd(), to, size); });
  use.remote = address_by([&](sockaddr* to, socklen_t* size) { return getpeername(socket.fd(), to, size); });
  tcp_info reported{};
  socklen_t size = sizeof reported;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &reported, &size) != 0) return;
  use.bytes = static_cast<double>(reported.tcpi_bytes_acked);
  use.busy = static_cast<double>(reported.tcpi_busy_time) * kMicrosecond;
  use.held_up = static_cast<double>(reported.tcpi_rwnd_limited + reported.tcpi_sndbuf_limited) * kMicrosecond;
  use.segments = reported.tcpi_segs_out;
  use.segments_again = reported.tcpi_total_retrans > reported.tcpi_dsack_dups
                           ? reported.tcpi_total_retrans - reported.tcpi_dsack_dups
                           : 0;
  use.round_trip = reported.tcpi_rtt * kMicrosecond;
  use.round_trip_min = reported.tcpi_min_rtt * kMicrosecond;
  use.segment_bytes = reported.tcpi_snd_mss;
}

std::vector<spec::RailUse> Group::rail_uses() const {
  std::vector<spec::RailUse> uses;
  const std::vector<spec::RailEndpoint>& endpoints = health_->member(health_->rank()).endpoints;
  for (const TcpChannel* link : links_) {
    for (std::size_t rail = 0; rail < endpoints.size(); ++rail) {
      spec::RailUse& use = uses.emplace_back();
      use.rail = endpoints[rail].rail;
      use.peer = link->peer();
      use.peer_node = health_->member(link->peer()).node;
      use.local = endpoints[rail].address;
      use.remote = health_->member(link->peer()).endpoints[rail].address;
      const Socket* const socket = link->socket_of(rail);
      use.state = socket != nullptr        ? spec::RailState::kUsed
                  : link->began_with(rail) ? spec::RailState::kLost
                                           : spec::RailState::kMissing;
      if (socket != nullptr) count_rail_use(*socket, use);
    }
  }
  return uses;
}

}  // namespace yoke::comm::direct
