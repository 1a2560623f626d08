#include "yoke/job/message.h"

#include <fmt/format.h>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

constexpr std::string_view kMagic = "YKJ\x01";
constexpr std::size_t kOutputHeaderSize = 5;

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

std::uint32_t from_little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

bool is_known(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(MessageType::kHello) &&
         type <= static_cast<std::uint8_t>(MessageType::kReady);
}

}  // namespace

std::string encode(const Message& message) {
  if (message.payload.size() > kMessagePayloadMost) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("what the ranks of a node are to be told takes {} bytes; {} is the most", message.payload.size(),
                    kMessagePayloadMost),
        "fewer ranks on a node, or a shorter command line and fewer --env: large values can be given in a file");
  }
  std::string frame(kMagic);
  frame += little_endian(static_cast<std::uint32_t>(message.payload.size()));
  frame += static_cast<char>(message.type);
  frame += message.payload;
  return frame;
}

std::optional<Message> MessageReader::next() {
  const std::string_view rest = std::string_view(held_).substr(begin_);
  const std::size_t magic_size = std::min(rest.size(), kMagic.size());
  if (rest.substr(0, magic_size) != kMagic.substr(0, magic_size)) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("what came is no message of yoke's: '{}'", printable(rest.substr(0, 64))));
  }
  if (rest.size() < kMessageHeaderSize) return std::nullopt;
  const std::uint32_t size = from_little_endian(rest.substr(4));
  const auto type = static_cast<std::uint8_t>(rest[8]);
  if (size > kMessagePayloadMost) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("a message of {} bytes came; {} is the most", size, kMessagePayloadMost));
  }
  if (!is_known(type)) throw Error(ErrorCode::kInvalid, fmt::format("a message of unknown type {} came", type));
  if (rest.size() < kMessageHeaderSize + size) return std::nullopt;
  Message message{static_cast<MessageType>(type), std::string(rest.substr(kMessageHeaderSize, size))};
  begin_ += kMessageHeaderSize + size;
  // Moved to the front now and then, not with every message: many small ones come in one piece.
  if (begin_ == held_.size() || begin_ > kMessagePayloadMost) {
    held_.erase(0, begin_);
    begin_ = 0;
  }
  return message;
}

Message output_message(int rank, int stream, std::string_view bytes) {
  std::string payload = little_endian(static_cast<std::uint32_t>(rank));
  payload += static_cast<char>(stream);
  payload += bytes;
  return {MessageType::kOutput, std::move(payload)};
}

OutputPiece read_output(const Message& message) {
  if (message.payload.size() < kOutputHeaderSize) throw Error(ErrorCode::kInvalid, "output of no rank came");
  OutputPiece piece{static_cast<int>(from_little_endian(message.payload)), message.payload[4],
                    message.payload.substr(kOutputHeaderSize)};
  if (piece.rank < 0 || piece.stream < 1 || piece.stream > 2) {
    throw Error(ErrorCode::kInvalid, fmt::format("output of rank {}, stream {} came", piece.rank, piece.stream));
  }
  return piece;
}

}  // namespace yoke
