// Any bytes: refused as kInvalid, or a conversation, whose printed form reads back the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/cli/conversation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::cli::Conversation read =
        yoke::cli::parse_conversation({reinterpret_cast<const char*>(data), size}, "input");
    YOKE_CHECK(yoke::cli::parse_conversation(yoke::cli::print_conversation(read), "printed") == read);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}
