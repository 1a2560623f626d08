// Sockets that stay on one rail: bound to its address and to its interface, so that what is measured is this rail,
// whatever the routes say. Each begins with the measurement's token, so that an unknown client is not measured.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "yoke/base/socket.h"

namespace yoke::link {

struct RailPlace {
  std::string address;    // this node's on the rail
  std::string interface;  // empty: the routes decide
  friend bool operator==(const RailPlace&, const RailPlace&) = default;
};
Document to_json(const RailPlace& place);
void from_json(const Document& document, RailPlace& place);

constexpr Seconds kConnectLimit{3};  // of one connection to another node
constexpr Seconds kAcceptLimit{4};   // the other node begins at about the same time

Socket listen_on_rail(const RailPlace& place);
Socket connect_on_rail(const RailPlace& place, const Endpoint& peer, const std::string& token, Deadline deadline);

// Takes the connections that show the token. Others are closed, and one that stays silent keeps nobody waiting.
class RailAcceptor {
 public:
  RailAcceptor(Socket& listener, std::string token) : listener_(listener), token_(std::move(token)) {}
  Socket next(Deadline deadline);  // throws Error(kTimeout)

 private:
  struct PendingConnection {
    Socket socket;
    std::string shown;  // of the token, so far
    Deadline until;
  };
  void wait(Deadline deadline) const;
  void take_pending();

  Socket& listener_;
  const std::string token_;
  std::deque<PendingConnection> pending_;  // the oldest first
};

Socket accept_on_rail(Socket& listener, const std::string& token, Deadline deadline);
// Segments that this end had to send again so far. Not those of which the other end said that it had them: what was
// lost then is its word of them, on the way back.
std::int64_t retransmits_of(const Socket& socket);

}  // namespace yoke::link
