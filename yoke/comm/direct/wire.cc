#include "yoke/comm/direct/wire.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke::comm::direct {
namespace {

constexpr std::uint64_t kHelloMagic = 0x6f6c6c65'656b6f79;      // "yokeello"
constexpr std::uint64_t kChallengeMagic = 0x6c616863'656b6f79;  // "yokechal"
constexpr std::uint64_t kAnswerMagic = 0x77736e61'656b6f79;     // "yokeansw"
constexpr std::uint32_t kFrameMagic = 0x6d72'6679;              // "yfrm"
constexpr std::uint32_t kHeartbeatMagic = 0x7461'6279;          // "ybat"

template <std::size_t N>
std::array<char, N> to_array(std::string_view text) {
  std::array<char, N> array{};
  std::copy_n(text.begin(), std::min(N, text.size()), array.begin());
  return array;
}

template <class Struct>
std::string_view text_of(const Struct& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The token is a key on both sides of an inner hash, so that a proof cannot be lengthened into another.
std::string keyed_hash(std::string_view token, std::string_view text) {
  return sha256_hex(fmt::format("{}|{}", token, sha256_hex(fmt::format("{}|{}", token, text))));
}

}  // namespace

std::array<char, 32> group_name(std::string_view token) { return to_array<32>(keyed_hash(token, "group")); }

std::array<char, 32> fresh_nonce() { return to_array<32>(random_token_hex(16)); }

std::array<char, 64> prove(Prover who, std::string_view token, const Hello& hello, const std::array<char, 32>& nonce) {
  const std::string text = fmt::format("{}|{}|{}", who == Prover::kClient ? "client" : "server", text_of(hello),
                                       std::string_view(nonce.data(), nonce.size()));
  return to_array<64>(keyed_hash(token, text));
}

Hello make_hello() {
  Hello hello;
  hello.magic = kHelloMagic;
  hello.nonce = fresh_nonce();
  return hello;
}

Challenge make_challenge() {
  Challenge challenge;
  challenge.magic = kChallengeMagic;
  challenge.nonce = fresh_nonce();
  return challenge;
}

Answer make_answer(HandshakeReply welcome, int epoch) {
  return {.magic = kAnswerMagic, .welcome = welcome, .epoch = static_cast<std::uint32_t>(epoch)};
}

FrameHeader make_frame(std::uint32_t epoch) { return {.magic = kFrameMagic, .epoch = epoch}; }

std::optional<Hello> decode_hello(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Hello)) return {};
  const auto hello = read_struct<Hello>(bytes);
  const bool known = hello.magic == kHelloMagic && hello.version == kWireVersion && hello.purpose <= Purpose::kMemory;
  return known ? std::optional(hello) : std::nullopt;
}

std::optional<Challenge> decode_challenge(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Challenge)) return {};
  const auto challenge = read_struct<Challenge>(bytes);
  const bool known = challenge.magic == kChallengeMagic && challenge.welcome <= HandshakeReply::kRefused;
  return known ? std::optional(challenge) : std::nullopt;
}

std::optional<Answer> decode_answer(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Answer)) return {};
  const auto answer = read_struct<Answer>(bytes);
  const bool known = answer.magic == kAnswerMagic && answer.welcome <= HandshakeReply::kRefused;
  return known ? std::optional(answer) : std::nullopt;
}

std::optional<FrameHeader> decode_frame(std::span<const std::byte> bytes, std::uint32_t epoch) {
  if (bytes.size() != sizeof(FrameHeader)) return {};
  const auto header = read_struct<FrameHeader>(bytes);
  const bool known = header.magic == kFrameMagic && header.epoch == epoch && header.length <= kMaxFrameBytes &&
                     header.offset <= UINT64_MAX - header.length;
  return known ? std::optional(header) : std::nullopt;
}

std::string encode_heartbeat(HeartbeatKind kind, std::uint32_t epoch, std::uint64_t begun, std::uint64_t finished,
                             const Error* failure) {
  std::string text;
  if (failure) {
    text = failure->message().substr(0, kMaxHeartbeatText / 2) + '\0' +
           failure->hint().substr(0, kMaxHeartbeatText / 2 - 1);
  }
  const HeartbeatHeader header{.magic = kHeartbeatMagic,
                               .kind = kind,
                               .size = static_cast<std::uint16_t>(text.size()),
                               .epoch = epoch,
                               .code = failure ? static_cast<std::uint32_t>(failure->code()) : 0,
                               .begun = begun,
                               .finished = finished};
  return std::string(text_of(header)) + text;
}

std::optional<std::size_t> heartbeat_size(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(HeartbeatHeader)) return 0;
  const auto header = read_struct<HeartbeatHeader>(bytes.first(sizeof(HeartbeatHeader)));
  if (header.magic != kHeartbeatMagic || header.kind > HeartbeatKind::kGoodbye || header.size > kMaxHeartbeatText)
    return {};
  const std::size_t size = sizeof header + header.size;
  return bytes.size() < size ? 0 : size;
}

HeartbeatFrame decode_heartbeat(std::span<const std::byte> bytes) {
  const auto header = read_struct<HeartbeatHeader>(bytes.first(sizeof(HeartbeatHeader)));
  return {header, {reinterpret_cast<const char*>(bytes.data()) + sizeof header, header.size}};
}

Error failure_of(const HeartbeatFrame& beat) {
  const bool known = beat.header.code <= static_cast<std::uint32_t>(ErrorCode::kInternal);
  const std::size_t zero = std::min(beat.text.find('\0'), beat.text.size());
  const std::string_view hint = beat.text.substr(std::min(zero + 1, beat.text.size()));
  return Error(known ? static_cast<ErrorCode>(beat.header.code) : ErrorCode::kInternal,
               printable(beat.text.substr(0, zero), kMaxHeartbeatText), printable(hint, kMaxHeartbeatText));
}

std::string describe(const MessageHeader& header) {
  const auto kind = static_cast<CollectiveKind>(header.kind);
  std::string text = fmt::format("operation {}, {}", header.sequence, to_string(kind));
  if (kind == CollectiveKind::kBarrier) return text;
  text += fmt::format(" of {} {}", header.count, tensor::to_string(static_cast<tensor::DType>(header.type)));
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return fmt::format("{} ({})", text, to_string(static_cast<ReduceOp>(header.op)));
    case CollectiveKind::kReduce:
      return fmt::format("{} ({}) at rank {}", text, to_string(static_cast<ReduceOp>(header.op)), header.root);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return fmt::format("{} at rank {}", text, header.root);
    default:
      return text;
  }
}

}  // namespace yoke::comm::direct
