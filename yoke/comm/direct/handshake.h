// How two ranks make sure of each other on a fresh connection (see wire.h): the client's side at one go, the server's
// side as a small machine that never waits, so that a silent client keeps nobody else waiting.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/comm/direct/wire.h"

namespace yoke::comm::direct {

// The name of the Unix socket of the rank that listens on this TCP address: in no folder, so nothing can be left. It
// follows from the group's token, so that no other user can take it first.
struct MemoryAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};
MemoryAddress memory_address(std::string_view token, const Endpoint& first_endpoint);
// Throws Error(kUnavailable) where nobody listens.
Socket connect_memory(std::string_view token, const Endpoint& first_endpoint);
Socket listen_memory(std::string_view token, const Endpoint& first_endpoint);

// What the server's side asks about a greeting.
struct HandshakePeer {
  HandshakeReply welcome = HandshakeReply::kNotYet;
  std::string token;  // of the group; empty where it is unknown
  int epoch = 0;
};

// Throws Error where the connection fails or the other does not know the token.
Answer greet(Socket& socket, const Hello& hello, std::string_view token, Deadline deadline);

class Handshake {
 public:
  Handshake(Socket socket, Deadline deadline) : socket_(std::move(socket)), deadline_(deadline) {}

  enum class State { kGoing, kDone, kFailed };
  // Reads what is there and answers. `look_up` finds the group by name; `evaluate` decides once the proof is right.
  State advance(const std::function<HandshakePeer(const Hello&)>& look_up,
                const std::function<HandshakeReply(const Hello&)>& evaluate);

  const Socket& socket() const { return socket_; }
  Socket take_socket() { return std::move(socket_); }
  const Hello& hello() const { return hello_; }
  bool expired() const { return deadline_.expired(); }

 private:
  bool fill(std::size_t size);
  bool send(std::span<const std::byte> bytes);

  Socket socket_;
  Deadline deadline_;
  std::vector<std::byte> bytes_;
  bool failed_ = false, challenged_ = false;
  Hello hello_;
  HandshakePeer guest_;
  Challenge challenge_;
};

}  // namespace yoke::comm::direct
