// Any bytes: refused as kInvalid, or a conversation, whose printed form reads back the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/chat/conversation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::chat::Conversation read =
        yoke::chat::parse_conversation({reinterpret_cast<const char*>(data), size}, "input");
    YOKE_CHECK(yoke::chat::parse_conversation(yoke::chat::print_conversation(read), "printed") == read);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}
