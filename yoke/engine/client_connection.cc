#include "yoke/engine/client_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "yoke/base/interrupt.h"

namespace yoke::engine {

// Sends what can be sent; true where something has come to read.
bool ClientConnection::wait_for(int limit_ms) {
  pollfd entry{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
  if (sent_ < outgoing_.size()) entry.events |= POLLOUT;
  const int ready = ::poll(&entry, 1, limit_ms);
  if (ready < 0 && errno == EINTR) throw_if_interrupted();
  if (ready <= 0) return false;
  if ((entry.revents & POLLOUT) != 0) push_out();
  return (entry.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

std::vector<ClientMessage> ClientConnection::take(Seconds wait) {
  const bool was_behind = is_behind();
  const Deadline deadline = Deadline::after(wait);
  bool came = false;
  while (!closed_ && !came && was_behind == is_behind()) {
    came = wait_for(deadline.poll_timeout_ms());
    if (deadline.expired()) break;
  }
  while (came && !closed_) {
    receive();
    came = wait_for(0);
  }
  std::vector<ClientMessage> messages;
  try {
    while (auto message = reader_.next_client_message()) messages.push_back(std::move(*message));
  } catch (const Error&) {
    close();  // a stream that lost its step does not find it back; the group has nothing to do with it
  }
  return messages;
}

void ClientConnection::receive() {
  std::array<char, 64 << 10> buffer;
  const ssize_t count = ::recv(socket_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    reader_.feed({buffer.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    close();
  }
}

void ClientConnection::send(std::span<const EngineEvent> events) {
  if (closed_ || events.empty()) return;
  outgoing_ += encode(events);
  push_out();
}

void ClientConnection::push_out() {
  while (sent_ < outgoing_.size()) {
    const ssize_t count =
        ::send(socket_.fd(), outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return close();
    }
  }
  // Moved to the front rarely, so that a long queue costs no more than its bytes.
  if (sent_ == outgoing_.size() || sent_ > outgoing_.size() / 2) {
    outgoing_.erase(0, sent_);
    sent_ = 0;
  }
}

void ClientConnection::flush(Deadline deadline) {
  while (!closed_ && sent_ < outgoing_.size() && !deadline.expired()) {
    if (wait_for(deadline.poll_timeout_ms())) receive();
  }
}

void ClientConnection::close() {
  closed_ = true;
  outgoing_.clear();
  sent_ = 0;
}

}  // namespace yoke::engine
