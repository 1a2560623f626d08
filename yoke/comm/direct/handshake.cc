#include "yoke/comm/direct/handshake.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "yoke/base/hash.h"

namespace yoke::comm::direct {
namespace {

std::string_view text(const std::array<char, 64>& proof) { return {proof.data(), proof.size()}; }

UniqueFd open_unix() {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw system_error(errno, "cannot make a Unix socket");
  return fd;
}

}  // namespace

MemoryAddress memory_address(std::string_view token, const Endpoint& first_endpoint) {
  const std::string secret = hmac_sha256_hex(token, "memory of " + to_string(first_endpoint));
  const std::string name = "yoke-direct-" + secret.substr(0, 32);
  MemoryAddress result;
  result.address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), result.address.sun_path + 1);  // behind a zero: an abstract name
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

Socket connect_memory(std::string_view token, const Endpoint& first_endpoint) {
  const MemoryAddress to = memory_address(token, first_endpoint);
  UniqueFd fd = open_unix();
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cannot connect to the rank at {} inside this node: {}", yoke::to_string(first_endpoint),
                            std::strerror(errno)),
                "ranks of one node must run on one machine, in one network namespace");
  }
  return {std::move(fd), yoke::to_string(first_endpoint)};
}

Socket listen_memory(std::string_view token, const Endpoint& first_endpoint) {
  const MemoryAddress at = memory_address(token, first_endpoint);
  UniqueFd fd = open_unix();
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 || listen(fd.get(), 128) != 0) {
    throw system_error(errno,
                       fmt::format("cannot listen for ranks of this node at {}", yoke::to_string(first_endpoint)));
  }
  return {std::move(fd), yoke::to_string(first_endpoint)};
}

Answer greet(Socket& socket, const Hello& hello, std::string_view token, Deadline deadline) {
  const auto refusal = [&](std::string_view what) {
    return Error(ErrorCode::kPermission, fmt::format("{} {}", socket.peer(), what),
                 "do all ranks have the membership of the same job?");
  };
  socket.send_all(bytes_of(hello), deadline);
  std::array<std::byte, sizeof(Challenge)> challenge_bytes;
  socket.receive_exact(challenge_bytes, deadline);
  const std::optional<Challenge> challenge = decode_challenge(challenge_bytes);
  if (!challenge) throw refusal("does not speak as a rank of this version of yoke does");
  if (challenge->welcome != HandshakeReply::kYes) return make_answer(challenge->welcome, 0);
  const auto expected = prove(Prover::kServer, token, hello, challenge->nonce);
  if (!equal_secrets(text(expected), text(challenge->proof))) throw refusal("does not know the token of the job");
  const Proof proof{prove(Prover::kClient, token, hello, challenge->nonce)};
  socket.send_all(bytes_of(proof), deadline);
  std::array<std::byte, sizeof(Answer)> answer_bytes;
  socket.receive_exact(answer_bytes, deadline);
  const std::optional<Answer> answer = decode_answer(answer_bytes);
  if (!answer) throw refusal("does not speak as a rank of this version of yoke does");
  return *answer;
}

// True once `size` bytes are there.
bool Handshake::fill(std::size_t size) {
  while (bytes_.size() < size) {
    const std::size_t had = bytes_.size();
    bytes_.resize(size);
    const ssize_t count = recv(socket_.fd(), bytes_.data() + had, size - had, MSG_DONTWAIT);
    bytes_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    failed_ = count == 0 || errno != EAGAIN;
    return false;
  }
  return true;
}

// A fresh connection has room for these few bytes; one that has not is no rank's.
bool Handshake::send(std::span<const std::byte> bytes) {
  return ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

Handshake::State Handshake::advance(const std::function<HandshakePeer(const Hello&)>& look_up,
                                    const std::function<HandshakeReply(const Hello&)>& evaluate) {
  if (!challenged_) {
    if (!fill(sizeof(Hello))) return failed_ ? State::kFailed : State::kGoing;
    const std::optional<Hello> hello = decode_hello(bytes_);
    if (!hello) return State::kFailed;
    hello_ = *hello;
    bytes_.clear();
    guest_ = look_up(hello_);
    challenge_ = make_challenge();
    challenge_.welcome = guest_.welcome;
    if (guest_.welcome == HandshakeReply::kYes)
      challenge_.proof = prove(Prover::kServer, guest_.token, hello_, challenge_.nonce);
    challenged_ = true;
    if (!send(bytes_of(challenge_)) || guest_.welcome != HandshakeReply::kYes) return State::kFailed;
  }
  if (!fill(sizeof(Proof))) return failed_ ? State::kFailed : State::kGoing;
  const auto proof = read_struct<Proof>(bytes_);
  const auto expected = prove(Prover::kClient, guest_.token, hello_, challenge_.nonce);
  const bool right = equal_secrets(text(expected), text(proof.proof));
  const HandshakeReply welcome = right ? evaluate(hello_) : HandshakeReply::kRefused;
  const bool answered = send(bytes_of(make_answer(welcome, guest_.epoch)));
  return answered && welcome == HandshakeReply::kYes ? State::kDone : State::kFailed;
}

}  // namespace yoke::comm::direct
