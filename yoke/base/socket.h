// TCP and Unix-domain stream sockets where every wait has a deadline and every failure names the peer.
//
//   Socket listener = listen_tcp({"127.0.0.1", 0});
//   Socket client = connect_tcp(listener.local(), {}, Deadline::after(2_s));
//   Socket server = listener.accept(Deadline::after(2_s));
//   client.send_all("hello", Deadline::after(1_s));
//
// A passed deadline is kTimeout and says what was waited for; a peer that closes in mid-message, refuses or is lost is
// kUnavailable. Nothing raises SIGPIPE. One thread may send while another receives; otherwise one thread at a time.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/result.h"

namespace yoke {

struct Document;

// Numbers only: resolving names has no deadline in libc, and clusters are written in addresses.
struct Endpoint {
  std::string address;  // "192.168.100.1", "fe80::1%eth0"
  int port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
// "192.168.100.1:29500", "[::1]:29500"
std::string to_string(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(std::string_view text);
Document to_json(const Endpoint& endpoint);
void from_json(const Document& document, Endpoint& endpoint);

struct ListenOptions {
  int backlog = 128;
};

class Socket {
 public:
  Socket() = default;
  Socket(UniqueFd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}
  Socket(Socket&& other) noexcept = default;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }  // non-blocking, for poll(2)
  const std::string& peer() const { return peer_; }
  Endpoint local() const;  // of a TCP socket; the chosen port where 0 was asked

  Socket accept(Deadline deadline);

  void send_all(std::span<const std::byte> data, Deadline deadline);
  void send_all(std::string_view data, Deadline deadline) { send_all(std::as_bytes(std::span(data)), deadline); }
  // Fills `data`; a peer that closes before is an Error.
  void receive_exact(std::span<std::byte> data, Deadline deadline);

  void set_no_delay();  // TCP: small messages leave at once
  void set_reno();      // TCP on a cable, whatever congestion control the system prefers
  void close();

 private:
  friend Socket listen_tcp(const Endpoint& endpoint, ListenOptions options);
  friend Socket listen_unix(const std::filesystem::path& path);
  std::size_t receive_before(std::span<std::byte> data, Deadline deadline, std::size_t wanted);
  [[noreturn]] void fail(int error_number, std::string_view what) const;

  UniqueFd fd_;
  std::string peer_;                  // of a listener: what it listens on
  std::filesystem::path owned_file_;  // of a Unix listener: removed with it
};

Socket listen_tcp(const Endpoint& endpoint, ListenOptions options = {});
// A file left behind by a listener that died is replaced; one that is in use is kConflict.
Socket listen_unix(const std::filesystem::path& path);

struct ConnectOptions {
  std::string source_address = {};  // to leave by the interface that has it
  std::string device = {};          // to leave by this interface whatever the routes say (SO_BINDTODEVICE)
};
Socket connect_tcp(const Endpoint& endpoint, const ConnectOptions& options, Deadline deadline);
Socket connect_unix(const std::filesystem::path& path, Deadline deadline);

}  // namespace yoke
