// Any bytes as a tokenizer.json: refused as an Error, or read, and then a text can be encoded and decoded, or an Error
// says why not.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::text::Tokenizer tokenizer =
        yoke::text::Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "input");
    const std::vector<yoke::text::TokenId> ids = tokenizer.encode(
        "Hi <s> 42 é\xFF\n", {.frame = yoke::text::Frame::kAdd, .origin = yoke::text::Origin::kTemplate});
    for (const yoke::text::TokenId id : ids) YOKE_CHECK(tokenizer.contains(id), "{}", id);
    YOKE_CHECK(!yoke::find_invalid_utf8(tokenizer.decode(ids)));
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid || error.code() == yoke::ErrorCode::kUnsupported ||
                   error.code() == yoke::ErrorCode::kExhausted,
               "{}", error.message());
  }
  return 0;
}
