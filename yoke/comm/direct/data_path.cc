#include "yoke/comm/direct/data_path.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace yoke::comm::direct {
namespace {

msghdr message_of(std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return message;
}

}  // namespace

std::size_t DataPath::send(std::span<iovec> parts) {
  const msghdr message = message_of(parts);
  for (;;) {
    const ssize_t count = sendmsg(socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) broken = errno == EPIPE ? "connection closed" : std::strerror(errno);
    return 0;
  }
}

std::size_t DataPath::receive(std::span<iovec> parts) {
  msghdr message = message_of(parts);
  for (;;) {
    // A look at one part is cheaper without a list of parts.
    const ssize_t count = parts.size() == 1 ? recv(socket.fd(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                            : recvmsg(socket.fd(), &message, MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) broken = "connection closed";
    if (count < 0 && errno != EAGAIN) broken = errno == ECONNRESET ? "connection reset" : std::strerror(errno);
    return 0;
  }
}

}  // namespace yoke::comm::direct
