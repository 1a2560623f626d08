// <linux/tcp.h> knows more of tcp_info than <netinet/tcp.h>, beside which it cannot stand.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "yoke/link/rail_socket.h"

namespace yoke::link {

std::int64_t retransmits_of(const Socket& socket) {
  tcp_info reported{};
  socklen_t size = sizeof reported;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &reported, &size) != 0) return 0;
  return std::int64_t{reported.tcpi_total_retrans} - reported.tcpi_dsack_dups;
}

}  // namespace yoke::link
