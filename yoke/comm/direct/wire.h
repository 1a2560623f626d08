// What the ranks of a group write to each other: the greeting of a connection, frames with parts of a stream, messages
// inside a stream, heartbeats. Fixed little-endian structs; the one that reads one from outside goes through
// the decode functions, which answer nothing for what cannot be. Plain data: any thread.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm::direct {

static_assert(std::endian::native == std::endian::little, "the structs below go over the wire as they are");

inline constexpr std::uint32_t kWireVersion = 1;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxHeartbeatText = 2000;

enum class Purpose : std::uint32_t {
  kData,       // frames, owned by the thread that runs the operations
  kHeartbeat,  // heartbeats, owned by the heartbeat thread
  kMemory,     // a Unix socket inside a node: descriptors of shared memory first, then beats
};

// Greeting: Hello → Challenge → Proof → Answer. Both sides prove that they know the token; it never travels.
struct Hello {
  std::uint64_t magic = 0;
  std::uint32_t version = kWireVersion;
  std::uint32_t epoch = 0;
  std::uint32_t from = 0, to = 0;  // ranks
  std::uint32_t rail = 0;          // its place among the rails; 0 for kMemory
  Purpose purpose = Purpose::kData;
  std::array<char, 32> group{};  // group_name(token)
  std::array<char, 32> nonce{};
};
static_assert(sizeof(Hello) == 96);

enum class HandshakeReply : std::uint32_t {
  kYes,
  kNotYet,   // the group or the epoch is not known here yet: come again
  kStale,    // the group has gone on to a later epoch
  kRefused,  // no member, or the place is taken
};

struct Challenge {
  std::uint64_t magic = 0;
  HandshakeReply welcome = HandshakeReply::kYes;
  std::uint32_t reserved = 0;
  std::array<char, 32> nonce{};
  std::array<char, 64> proof{};
};
struct Proof {
  std::array<char, 64> proof{};
};
struct Answer {
  std::uint64_t magic = 0;
  HandshakeReply welcome = HandshakeReply::kYes;
  std::uint32_t epoch = 0;  // where the answering side stands
};

// A part of the stream of bytes from one rank to another.
struct FrameHeader {
  std::uint32_t magic = 0;
  std::uint32_t length = 0;        // bytes that follow; 0: only the acknowledgement counts
  std::uint64_t offset = 0;        // of the first of them in the stream
  std::uint64_t acknowledged = 0;  // all before it have come from you
  std::uint32_t epoch = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(FrameHeader) == 32);

// Stands in the stream before the bytes of each message: what the sender takes this for.
struct MessageHeader {
  std::uint32_t sequence = 0;  // of the group's operations; of the pair's messages where two ranks talk
  std::uint8_t kind = 0, type = 0, op = 0;
  std::uint8_t step = 0;  // of an operation in several steps
  std::uint32_t root = 0;
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;  // elements, as in Collective
  std::uint64_t size = 0;   // bytes that follow
  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};
static_assert(sizeof(MessageHeader) == 32);

enum class HeartbeatKind : std::uint16_t { kAlive, kFailed, kGoodbye };

// A sign of life, or the news that the group has failed: then `size` bytes of text follow, message and hint with a zero
// between.
struct HeartbeatHeader {
  std::uint32_t magic = 0;
  HeartbeatKind kind = HeartbeatKind::kAlive;
  std::uint16_t size = 0;
  std::uint32_t epoch = 0;
  std::uint32_t code = 0;                 // an ErrorCode
  std::uint64_t begun = 0, finished = 0;  // sequence numbers
};
static_assert(sizeof(HeartbeatHeader) == 32);

struct HeartbeatFrame {
  HeartbeatHeader header;
  std::string_view text;  // into the bytes it was read from
};

std::array<char, 32> group_name(std::string_view token);
std::array<char, 32> fresh_nonce();
enum class Prover { kClient, kServer };
std::array<char, 64> prove(Prover who, std::string_view token, const Hello& hello, const std::array<char, 32>& nonce);

Hello make_hello();
Challenge make_challenge();
Answer make_answer(HandshakeReply welcome, int epoch);
FrameHeader make_frame(std::uint32_t epoch);

std::optional<Hello> decode_hello(std::span<const std::byte> bytes);
std::optional<Challenge> decode_challenge(std::span<const std::byte> bytes);
std::optional<Answer> decode_answer(std::span<const std::byte> bytes);
std::optional<FrameHeader> decode_frame(std::span<const std::byte> bytes, std::uint32_t epoch);

std::string encode_heartbeat(HeartbeatKind kind, std::uint32_t epoch, std::uint64_t begun, std::uint64_t finished,
                             const Error* failure = nullptr);
// How many bytes the beat at the front of `bytes` takes: 0 where some are still to come, nothing where it is none.
std::optional<std::size_t> heartbeat_size(std::span<const std::byte> bytes);
HeartbeatFrame decode_heartbeat(std::span<const std::byte> bytes);  // of a whole one
Error failure_of(const HeartbeatFrame& beat);

// "operation 42, all-reduce of 100 f32 (sum)"
std::string describe(const MessageHeader& header);

template <class Struct>
std::span<const std::byte> bytes_of(const Struct& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class Struct>
Struct read_struct(std::span<const std::byte> bytes) {
  Struct value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace yoke::comm::direct
