// Any bytes as what an unknown client may send to a rank: as a greeting, as frames on a data socket, as heartbeats.
// They are refused or understood; nothing is read or written where it must not be, and nothing waits.
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "yoke/base/check.h"
#include "yoke/comm/direct/handshake.h"
#include "yoke/comm/direct/tcp_channel.h"

namespace yoke::comm::direct {
namespace {

struct Ends {
  Socket ours, theirs;
};

Ends connected() {
  int fds[2];
  YOKE_CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {Socket(UniqueFd(fds[0]), "ours"), Socket(UniqueFd(fds[1]), "theirs")};
}

void send(Socket& socket, std::span<const std::byte> bytes) {
  ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void as_handshake(std::span<const std::byte> bytes) {
  Ends ends = connected();
  Handshake greeting(std::move(ends.ours), Deadline::after({1}));
  send(ends.theirs, bytes);
  for (int i = 0; i < 3; ++i) {
    const auto state = greeting.advance(
        [](const Hello&) {
          return HandshakePeer{HandshakeReply::kYes, "a token", 1};
        },
        [](const Hello&) { return HandshakeReply::kYes; });
    YOKE_CHECK(state != Handshake::State::kDone, "an unknown client was let in");
    if (state == Handshake::State::kFailed) return;
  }
}

void as_heartbeats(std::span<const std::byte> bytes) {
  while (const std::optional<std::size_t> size = heartbeat_size(bytes)) {
    if (*size == 0) return;
    const HeartbeatFrame beat = decode_heartbeat(bytes.first(*size));
    YOKE_CHECK(failure_of(beat).message().size() <= 5 * kMaxHeartbeatText);
    bytes = bytes.subspan(*size);
  }
}

// The first byte chooses what the receiver expects.
void as_frames(std::span<const std::byte> bytes) {
  spec::Membership membership{
      .epoch = 1, .token = "00", .members = {{"a", {{"A", "127.0.0.1", 1}}}, {"b", {{"A", "127.0.0.1", 1}}}}};
  for (spec::Member& member : membership.members) member.endpoints.push_back({"B", "127.0.0.1", 1});
  Health health(membership, 1);
  LinkTuning tuning;
  const unsigned choice = bytes.empty() ? 0 : std::to_integer<unsigned>(bytes[0]);
  tuning.stripe_from = choice % 2 == 0 ? SIZE_MAX : 1;
  Ends a = connected(), b = connected();
  std::vector<Socket> sockets;
  sockets.push_back(std::move(a.ours));
  sockets.push_back(std::move(b.ours));
  TcpChannel channel(health, 0, std::move(sockets), tuning);
  std::array<std::byte, 256> destination{};
  const MessageHeader expected{.sequence = 1, .count = 64, .size = choice % 4 < 2 ? destination.size() : 0};
  send(choice % 8 < 4 ? a.theirs : b.theirs, bytes.subspan(bytes.empty() ? 0 : 1));
  try {
    channel.receive(expected, choice % 16 < 8 ? destination.data() : nullptr);
    for (int i = 0; i < 40; ++i) {
      channel.advance();
      channel.consume(channel.receiving() ? channel.window().size() : 0);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
}

}  // namespace
}  // namespace yoke::comm::direct

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  yoke::comm::direct::as_handshake(bytes);
  yoke::comm::direct::as_heartbeats(bytes);
  yoke::comm::direct::as_frames(bytes);
  if (const auto challenge = yoke::comm::direct::decode_challenge(bytes))
    YOKE_CHECK_EQ(bytes.size(), sizeof *challenge);
  if (const auto answer = yoke::comm::direct::decode_answer(bytes)) YOKE_CHECK_EQ(bytes.size(), sizeof *answer);
  return 0;
}
