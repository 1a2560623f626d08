#include "yoke/job/message.h"

#include <fmt/format.h>

#include "yoke/base/error.h"

namespace yoke::job {
namespace {

constexpr agent::FrameForm kMessageForm{.magic = "YKJ\x01",
                                        .header_size = kMessageHeaderSize,
                                        .payload_max = kMaxMessagePayload,
                                        .kind_max = static_cast<std::uint8_t>(MessageType::kNodeState)};
constexpr std::size_t kOutputHeaderSize = 5;

}  // namespace

std::string encode(const Message& message) {
  if (message.payload.size() > kMaxMessagePayload) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("the message to the ranks of a node takes {} bytes; the limit is {}", message.payload.size(),
                    kMaxMessagePayload),
        "fewer ranks on a node, or a shorter command line and fewer --env: large values can be given in a file");
  }
  return agent::frame_begin(kMessageForm, message.payload.size(), static_cast<std::uint8_t>(message.type)) +
         message.payload;
}

MessageReader::MessageReader() : buffer_(kMessageForm) {}

std::optional<Message> MessageReader::next() {
  const auto frame = buffer_.next();
  if (!frame) return std::nullopt;
  return Message{static_cast<MessageType>(agent::frame_kind(*frame)), frame->substr(kMessageHeaderSize)};
}

Message output_message(int rank, int stream, std::string_view bytes) {
  std::string payload = agent::little_endian(static_cast<std::uint32_t>(rank));
  payload += static_cast<char>(stream);
  payload += bytes;
  return {MessageType::kOutput, std::move(payload)};
}

OutputPiece read_output(const Message& message) {
  if (message.payload.size() < kOutputHeaderSize) throw Error(ErrorCode::kInvalid, "output of no rank came");
  OutputPiece piece{static_cast<int>(agent::from_little_endian(message.payload)), message.payload[4],
                    message.payload.substr(kOutputHeaderSize)};
  if (piece.rank < 0 || piece.stream < 1 || piece.stream > 2) {
    throw Error(ErrorCode::kInvalid, fmt::format("output of rank {}, stream {} came", piece.rank, piece.stream));
  }
  return piece;
}

}  // namespace yoke::job
