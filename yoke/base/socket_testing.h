// A socket as a test reads from it: what has come, not a known number of bytes.
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <span>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"

namespace yoke {

// At least one byte; 0 where the peer has closed, or where the deadline passes before anything comes.
inline std::size_t receive_some(Socket& socket, std::span<std::byte> data, Deadline deadline) {
  pollfd waiting{.fd = socket.fd(), .events = POLLIN};
  if (poll(&waiting, 1, deadline.poll_timeout_ms()) <= 0) return 0;
  const ssize_t count = recv(socket.fd(), data.data(), data.size(), 0);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace yoke
