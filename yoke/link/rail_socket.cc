#include "yoke/link/rail_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke::link {

using namespace literals;

namespace {

constexpr Seconds kShowLimit{2};           // for the token to come
constexpr std::size_t kMaxPending = 256;   // that have not shown it; beyond, the oldest goes
constexpr Seconds kPendingInterval{0.05};  // how soon one that is late is closed

// What has come of the token; false where no more will come.
bool read_shown(const Socket& socket, std::string& shown, std::size_t wanted) {
  std::string piece(wanted - shown.size(), '\0');
  const ssize_t count = recv(socket.fd(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  shown.append(piece, 0, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, RailPlace& place) {
  visit.required("address", place.address);
  visit.required("interface", place.interface);
}

Document to_json(const RailPlace& place) { return write_fields(place); }
void from_json(const Document& document, RailPlace& place) { read_fields(document, place); }

Socket listen_on_rail(const RailPlace& place) {
  Socket listener = listen_tcp({place.address, 0});
  // Accepted connections inherit it: answers leave by the rail too.
  if (!place.interface.empty() && setsockopt(listener.fd(), SOL_SOCKET, SO_BINDTODEVICE, place.interface.data(),
                                             static_cast<socklen_t>(place.interface.size())) != 0) {
    throw system_error(errno, fmt::format("cannot listen on the interface '{}'", printable(place.interface)),
                       "see 'ip link' for the names of the interfaces");
  }
  return listener;
}

Socket connect_on_rail(const RailPlace& place, const Endpoint& peer, const std::string& token, Deadline deadline) {
  Socket socket = connect_tcp(peer, {.source_address = place.address, .device = place.interface}, deadline);
  socket.set_no_delay();
  socket.set_reno();
  socket.send_all(token, deadline);
  return socket;
}

void RailAcceptor::wait(Deadline deadline) const {
  std::vector<pollfd> waiting = {{listener_.fd(), POLLIN, 0}};
  for (const PendingConnection& guest : pending_) waiting.push_back({guest.socket.fd(), POLLIN, 0});
  const Deadline soon = Deadline::after(std::min(deadline.remaining(), pending_.empty() ? 1_s : kPendingInterval));
  if (poll(waiting.data(), waiting.size(), soon.poll_timeout_ms()) < 0 && errno != EINTR) {
    throw system_error(errno, "cannot wait for a connection");
  }
}

// One that gave up while it was queued is none.
void RailAcceptor::take_pending() {
  auto accepted = try_to([&] { return listener_.accept(Deadline::after(Seconds{0})); });
  if (!accepted && accepted.error().code() == ErrorCode::kTimeout) return;
  pending_.push_back({value_or_throw(std::move(accepted)), {}, Deadline::after(kShowLimit)});
  if (pending_.size() > kMaxPending) pending_.pop_front();
}

Socket RailAcceptor::next(Deadline deadline) {
  for (;;) {
    take_pending();
    for (auto guest = pending_.begin(); guest != pending_.end();) {
      const bool more = read_shown(guest->socket, guest->shown, token_.size());
      if (guest->shown.size() == token_.size() && equal_secrets(guest->shown, token_)) {
        Socket socket = std::move(guest->socket);
        pending_.erase(guest);
        socket.set_no_delay();
        return socket;
      }
      const bool is_wrong = !more || guest->shown.size() == token_.size() || guest->until.expired();
      guest = is_wrong ? pending_.erase(guest) : guest + 1;
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("waited too long for a connection on {}", listener_.peer()));
    }
    wait(deadline);
  }
}

Socket accept_on_rail(Socket& listener, const std::string& token, Deadline deadline) {
  return RailAcceptor(listener, token).next(deadline);
}

}  // namespace yoke::link
