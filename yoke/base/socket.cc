#include "yoke/base/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Result<Address> to_address(const Endpoint& endpoint) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const bool port_fits = endpoint.port >= 0 && endpoint.port <= 65535;
  // The library also takes "1" and "0x7f.1" for IPv4; what has neither four parts nor a colon is a mistake to us.
  const bool looks_right = std::count(endpoint.address.begin(), endpoint.address.end(), '.') == 3 ||
                           endpoint.address.find(':') != std::string::npos;
  if (!port_fits || !looks_right ||
      getaddrinfo(endpoint.address.c_str(), std::to_string(endpoint.port).c_str(), &wanted, &found) != 0) {
    return Unexpected(Error(ErrorCode::kInvalid,
                            fmt::format("'{}' is no address with port", printable(to_string(endpoint))),
                            "write numbers, such as 192.168.100.1:29500 or [fd00::1]:29500"));
  }
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Endpoint to_endpoint(const Address& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV)) {
    return {};
  }
  return {host, std::atoi(port)};
}

Address to_address(const fs::path& path) {
  sockaddr_un unix_address{};
  if (path.native().empty() || path.native().size() >= sizeof unix_address.sun_path) {
    throw Error(ErrorCode::kInvalid, fmt::format("'{}' cannot be the path of a socket", printable(path.native())),
                fmt::format("a socket's path has 1 to {} bytes", sizeof unix_address.sun_path - 1));
  }
  unix_address.sun_family = AF_UNIX;
  std::memcpy(unix_address.sun_path, path.c_str(), path.native().size());
  Address address;
  std::memcpy(&address.storage, &unix_address, sizeof unix_address);
  address.size = sizeof unix_address;
  return address;
}

UniqueFd open_socket(int family, const std::string& peer) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw system_error(errno, fmt::format("cannot make a socket for {}", peer));
  return fd;
}

template <class Value>
void set_option(const UniqueFd& fd, int level, int option, const Value& value, const std::string& what) {
  if (setsockopt(fd.get(), level, option, &value, sizeof value) != 0) throw system_error(errno, what);
}

// False at the deadline.
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd waiting{fd, events, 0};
    const int ready = poll(&waiting, 1, deadline.poll_timeout_ms());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw system_error(errno, "cannot wait for a socket");
    if (deadline.expired()) return false;
  }
}

Error timeout(std::string_view what, const std::string& peer, std::string hint = {}) {
  return Error(ErrorCode::kTimeout, fmt::format("waited too long {} {}", what, peer), std::move(hint));
}

void connect_before(const UniqueFd& fd, const Address& address, const std::string& peer, Deadline deadline) {
  const std::string what = fmt::format("cannot connect to {}", peer);
  for (;;) {
    if (connect(fd.get(), address.get(), address.size) == 0 || errno == EISCONN) return;
    if (errno == EINTR) continue;
    if (errno == EINPROGRESS || errno == EALREADY) break;
    // A Unix listener whose queue is full: there is nothing to poll for, so ask again.
    if (errno != EAGAIN) throw system_error(errno, what);
    if (deadline.expired()) throw timeout("to be accepted by", peer);
    real_clock().sleep({0.005});
  }
  if (!wait_for(fd.get(), POLLOUT, deadline)) {
    throw timeout("for a connection to", peer, "is the machine up, and does a firewall drop its packets?");
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
  if (failure != 0) throw system_error(failure, what);
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto invalid = [&] {
    return Unexpected(Error(ErrorCode::kInvalid, fmt::format("'{}' is no address with port", printable(text)),
                            "write numbers, such as 192.168.100.1:29500 or [fd00::1]:29500"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid();
  std::string_view address = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
  if (bracketed) address = address.substr(1, address.size() - 2);
  if (bracketed != (address.find(':') != std::string_view::npos)) return invalid();
  Endpoint endpoint{std::string(address), -1};
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size()) return invalid();
  const Result<Address> known = to_address(endpoint);
  if (!known) return invalid();
  return to_endpoint(*known);  // one spelling for one address
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    peer_ = std::move(other.peer_);
    owned_file_ = std::exchange(other.owned_file_, {});
  }
  return *this;
}

void Socket::close() {
  std::error_code ignored;
  if (fd_ && !owned_file_.empty()) fs::remove(owned_file_, ignored);
  fd_.reset();
}

Endpoint Socket::local() const {
  Address address;
  address.size = sizeof address.storage;
  if (getsockname(fd(), address.get(), &address.size) != 0) fail(errno, "cannot read the local address");
  return to_endpoint(address);
}

void Socket::fail(int error_number, std::string_view what) const {
  throw system_error(error_number, fmt::format("{} {}", what, peer_));
}

Socket Socket::accept(Deadline deadline) {
  for (;;) {
    Address address;
    address.size = sizeof address.storage;
    UniqueFd fd(accept4(fd_.get(), address.get(), &address.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) return {std::move(fd), address.family() == AF_UNIX ? peer_ : to_string(to_endpoint(address))};
    // A peer that gave up while it was queued, and the errors of its network, are no errors of this listener:
    // accept(2).
    const bool again = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
    if (!again) fail(errno, "cannot accept a connection on");
    if (!wait_for(fd_.get(), POLLIN, deadline)) throw timeout("for a connection on", peer_);
  }
}

void Socket::send_all(std::span<const std::byte> data, Deadline deadline) {
  while (!data.empty()) {
    const ssize_t count = send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      data = data.subspan(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (!wait_for(fd_.get(), POLLOUT, deadline)) {
        throw timeout(fmt::format("to send {} bytes to", data.size()), peer_);
      }
    } else if (errno != EINTR) {
      fail(errno, "cannot send to");
    }
  }
}

std::size_t Socket::receive_before(std::span<std::byte> data, Deadline deadline, std::size_t wanted) {
  for (;;) {
    const ssize_t count = recv(fd_.get(), data.data(), data.size(), 0);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN) {
      if (!wait_for(fd_.get(), POLLIN, deadline)) throw timeout(fmt::format("for {} bytes from", wanted), peer_);
    } else if (errno != EINTR) {
      fail(errno, "cannot receive from");
    }
  }
}

void Socket::receive_exact(std::span<std::byte> data, Deadline deadline) {
  const std::size_t wanted = data.size();
  while (!data.empty()) {
    const std::size_t count = receive_before(data, deadline, data.size());
    if (count == 0) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} closed the connection after {} of {} bytes", peer_, wanted - data.size(), wanted));
    }
    data = data.subspan(count);
  }
}

void Socket::set_no_delay() {
  set_option(fd_, IPPROTO_TCP, TCP_NODELAY, 1, fmt::format("cannot set TCP_NODELAY towards {}", peer_));
}

// On a cable nothing is lost and nobody else is to be let by. Some systems have BBR as their default, which measures
// and paces what it sends: it takes a busy moment of the machine for the rate of the cable, and is slow after it. Reno
// is in every kernel and open to all.
void Socket::set_reno() {
  constexpr std::string_view kName = "reno";
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_CONGESTION, kName.data(), kName.size());
}

Socket listen_tcp(const Endpoint& endpoint, ListenOptions options) {
  const Address address = value_or_throw(to_address(endpoint));
  const std::string name = to_string(endpoint);
  const std::string what = fmt::format("cannot listen on {}", name);
  UniqueFd fd = open_socket(address.family(), name);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, what);
  if (address.family() == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, what);
  if (bind(fd.get(), address.get(), address.size) != 0 || listen(fd.get(), options.backlog) != 0) {
    const int failure = errno;
    throw system_error(failure, what,
                       failure == EADDRINUSE      ? "end what uses the port, or choose another"
                       : failure == EADDRNOTAVAIL ? "does this machine have that address? See `ip address`"
                                                  : "");
  }
  Socket listener(std::move(fd), name);
  listener.peer_ = to_string(listener.local());  // with the port that was chosen
  return listener;
}

Socket listen_unix(const fs::path& path) {
  const Address address = to_address(path);
  const std::string what = fmt::format("cannot listen on {}", path.native());
  UniqueFd fd = open_socket(AF_UNIX, path.native());
  int failure = bind(fd.get(), address.get(), address.size) == 0 ? 0 : errno;
  if (failure == EADDRINUSE) {
    const UniqueFd probe = open_socket(AF_UNIX, path.native());
    if (connect(probe.get(), address.get(), address.size) != 0 && errno == ECONNREFUSED) {
      unlink(path.c_str());
      failure = bind(fd.get(), address.get(), address.size) == 0 ? 0 : errno;
    }
  }
  if (failure != 0) throw system_error(failure, what, failure == EADDRINUSE ? "another process listens there" : "");
  if (listen(fd.get(), ListenOptions().backlog) != 0) throw system_error(errno, what);
  Socket listener(std::move(fd), path.native());
  listener.owned_file_ = path;
  return listener;
}

Socket connect_tcp(const Endpoint& endpoint, const ConnectOptions& options, Deadline deadline) {
  const Address address = value_or_throw(to_address(endpoint));
  const std::string peer = to_string(endpoint);
  UniqueFd fd = open_socket(address.family(), peer);
  if (!options.device.empty()) {
    if (setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, options.device.data(),
                   static_cast<socklen_t>(options.device.size())) != 0) {
      throw system_error(errno, fmt::format("cannot reach {} by the interface '{}'", peer, printable(options.device)),
                         "see `ip link` for the interfaces that this machine has");
    }
  }
  if (!options.source_address.empty()) {
    const Address source = value_or_throw(to_address(Endpoint{options.source_address, 0}));
    if (bind(fd.get(), source.get(), source.size) != 0) {
      throw system_error(errno, fmt::format("cannot reach {} from the address {}", peer, options.source_address),
                         "see `ip address` for the addresses that this machine has");
    }
  }
  connect_before(fd, address, peer, deadline);
  return {std::move(fd), peer};
}

Socket connect_unix(const fs::path& path, Deadline deadline) {
  const Address address = to_address(path);
  UniqueFd fd = open_socket(AF_UNIX, path.native());
  connect_before(fd, address, path.native(), deadline);
  return {std::move(fd), path.native()};
}

}  // namespace yoke
