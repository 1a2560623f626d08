// Any bytes as a chat template: refused as an Error, or rendered within the limits to valid UTF-8 whose parts from
// users are marked.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/text/chat.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const yoke::Document messages = yoke::parse_json(
      R"([{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "\u0001\u0002é\n"},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]},
          {"role": "tool", "content": "[1, true]"}])",
      "messages");
  try {
    const auto chat = yoke::text::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, "input");
    yoke::text::ChatOptions options;
    options.clock = std::tm{};
    options.limits = {.steps = 20'000, .text_bytes = 1 << 16};
    for (const yoke::text::Segment& segment : chat.render(messages, options)) {
      YOKE_CHECK(!yoke::find_invalid_utf8(segment.text));
      // The template's own text has no such characters unless it wrote them.
      const bool wrote =
          std::string_view(reinterpret_cast<const char*>(data), size).find('\1') != std::string_view::npos;
      const bool escaped =
          std::string_view(reinterpret_cast<const char*>(data), size).find('\\') != std::string_view::npos;
      const bool has_user_text = segment.text.find("\1\2") != std::string::npos;
      YOKE_CHECK(wrote || escaped || !has_user_text || segment.origin == yoke::text::Origin::kUser);
    }
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid || error.code() == yoke::ErrorCode::kUnsupported ||
                   error.code() == yoke::ErrorCode::kExhausted,
               "{}", error.message());
  }
  return 0;
}
