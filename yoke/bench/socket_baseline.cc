#include "yoke/bench/socket_baseline.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/bench/exchange.h"

namespace yoke::bench {

SocketBaseline::SocketBaseline(comm::Communicator& comm, const std::string& address, Seconds timeout)
    : timeout_(timeout) {
  if (comm.size() != 2) {
    throw Error(ErrorCode::kUsage, fmt::format("a bare socket exchange is between two ranks, not {}", comm.size()),
                "--ranks 2, or leave out --compare-with socket");
  }
  const Deadline deadline = Deadline::after(timeout);
  Socket listener;
  if (comm.rank() == 0) listener = listen_tcp({address, 0});
  const std::vector<std::string> reported =
      gather_texts(comm, comm.rank() == 0 ? yoke::to_string(listener.local()) : std::string(), timeout);
  socket_ = comm.rank() == 0
                ? listener.accept(deadline)
                : connect_tcp(value_or_throw(parse_endpoint(reported[0])), {.source_address = address}, deadline);
  socket_.set_no_delay();
}

void SocketBaseline::run(const comm::Collective& operation) {
  const std::size_t size = operation.count * tensor::size_of(operation.type);
  const auto* from = static_cast<const std::byte*>(operation.send);
  auto* to = static_cast<std::byte*>(operation.receive);
  const Deadline deadline = Deadline::after(timeout_);
  std::size_t sent = 0, received = 0;
  int idle = 0;
  while (sent < size || received < size) {
    ssize_t moved = 0;
    if (sent < size) moved = ::send(socket_.fd(), from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved > 0) sent += static_cast<std::size_t>(moved);
    moved = 0;
    if (received < size) moved = ::recv(socket_.fd(), to + received, size - received, MSG_DONTWAIT);
    if (moved > 0) received += static_cast<std::size_t>(moved);
    const bool is_gone = received < size && (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR));
    if (is_gone) throw Error(ErrorCode::kUnavailable, "the other rank closed the socket of the bare exchange");
    if (moved <= 0 && ++idle % 4096 == 0 && deadline.expired()) {
      throw Error(ErrorCode::kTimeout, "the other rank does not come to the bare exchange");
    }
  }
}

}  // namespace yoke::bench
