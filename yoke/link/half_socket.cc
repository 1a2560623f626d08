#include "yoke/link/half_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke {

using namespace literals;

Socket listen_on_half(const HalfPlace& place) {
  Socket listener = listen_tcp({place.address, 0});
  // Accepted connections inherit it: answers leave by the half too.
  if (!place.interface.empty() && setsockopt(listener.fd(), SOL_SOCKET, SO_BINDTODEVICE, place.interface.data(),
                                             static_cast<socklen_t>(place.interface.size())) != 0) {
    throw system_error(errno, fmt::format("cannot listen on the interface '{}'", printable(place.interface)),
                       "see 'ip link' for the names of the interfaces");
  }
  return listener;
}

Socket connect_on_half(const HalfPlace& place, const Endpoint& peer, const std::string& token, Deadline deadline) {
  Socket socket = connect_tcp(peer, {.source_address = place.address, .device = place.interface}, deadline);
  socket.set_no_delay();
  socket.send_all(token, deadline);
  return socket;
}

Socket accept_on_half(Socket& listener, const std::string& token, Deadline deadline) {
  while (true) {
    Socket socket = listener.accept(deadline);
    std::string shown(token.size(), '\0');
    const auto read = try_to([&] {
      socket.receive_exact(std::as_writable_bytes(std::span(shown)),
                           Deadline::after(std::min(2_s, deadline.remaining())));
    });
    if (!read || !equal_secrets(shown, token)) continue;
    socket.set_no_delay();
    return socket;
  }
}

}  // namespace yoke
