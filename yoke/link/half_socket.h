// Sockets that stay on one half: bound to its address and to its interface, so that what is measured is this half,
// whatever the routes say. Each begins with the measurement's token, so that a stranger is not measured.
#pragma once
#include <cstdint>
#include <string>

#include "yoke/base/socket.h"

namespace yoke {

struct HalfPlace {
  std::string address;    // this node's on the half
  std::string interface;  // empty: the routes decide
  friend bool operator==(const HalfPlace&, const HalfPlace&) = default;
};

constexpr Seconds kConnectLimit{3};  // of one connection to another node
constexpr Seconds kAcceptLimit{4};   // the other node begins at about the same time

Socket listen_on_half(const HalfPlace& place);
Socket connect_on_half(const HalfPlace& place, const Endpoint& peer, const std::string& token, Deadline deadline);
// The next connection that shows the token; others are closed.
Socket accept_on_half(Socket& listener, const std::string& token, Deadline deadline);
// Segments that this end had to send again so far. Not those of which the other end said that it had them: what was
// lost then is its word of them, on the way back.
std::int64_t retransmits_of(const Socket& socket);

}  // namespace yoke
