// Any bytes on a channel, in pieces of any size: refused as kInvalid, or read, and then the message writes back the
// same. Payloads are read as every type, as a hostile sender could say any.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/job/job_messages.h"

namespace {

using namespace yoke;
using namespace yoke::job;

template <class Payload>
void read_as(const Message& message) {
  try {
    const auto payload = read_payload<Payload>(message);
    const auto again = read_payload<Payload>(to_message(message.type, payload));
    YOKE_CHECK(again == payload, "{}", message.payload);
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
}

void read_as_error_and_membership(const Message& message) {
  try {
    read_error(message);
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  try {
    read_membership(message);
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  MessageReader reader;
  try {
    const std::size_t piece = 1 + (size > 0 ? data[0] % 97U : 0U);
    for (std::size_t at = 0; at < size; at += piece) {
      reader.feed(bytes.substr(at, piece));
      while (const auto message = reader.next()) {
        MessageReader again;
        again.feed(encode(*message));
        YOKE_CHECK(again.next() == message);
        if (message->type == MessageType::kOutput) {
          const OutputPiece output = read_output(*message);
          YOKE_CHECK(output_message(output.rank, output.stream, output.bytes) == *message);
          continue;
        }
        read_as<Hello>(*message);
        read_as<StartRanks>(*message);
        read_as<RankEnded>(*message);
        read_as<RankList>(*message);
        read_as<Credit>(*message);
        read_as<Join>(*message);
        read_as<PathReport>(*message);
        read_as<NodeState>(*message);
        read_as_error_and_membership(*message);
      }
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}
