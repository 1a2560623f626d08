// Any bytes between client and engine, in pieces of any size: refused as kInvalid, or read, and then the message that
// is written of it reads back and writes the same. Both directions, as either side could be the broken one.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/engine/messages.h"

namespace {

using namespace yoke;
using namespace yoke::engine;

void write_back(const ClientMessage& message) {
  if (std::holds_alternative<RefusedRequest>(message)) return;
  EngineMessageReader again;
  const std::string bytes = encode(message);
  again.feed(bytes);
  YOKE_CHECK(encode(again.next_client_message().value()) == bytes, "{} bytes", bytes.size());
}

void write_back(const EngineEvent& event) {
  EngineMessageReader again;
  const std::string bytes = encode(event);
  again.feed(bytes);
  YOKE_CHECK(encode(again.next_event().value()) == bytes, "{} bytes", bytes.size());
}

template <class Next>
void read_all(std::string_view bytes, std::size_t piece, Next next) {
  EngineMessageReader reader;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(bytes.substr(at, piece));
      while (const auto message = next(reader)) write_back(*message);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t piece = 1 + (size > 0 ? data[size - 1] % 97U : 0U);
  read_all(bytes, piece, [](EngineMessageReader& reader) { return reader.next_client_message(); });
  read_all(bytes, piece, [](EngineMessageReader& reader) { return reader.next_event(); });
  return 0;
}
