// Any bytes as a pattern, a newline, and a text: refused as an Error, or its matches lie in the text in order.
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/pattern.h"
#include "yoke/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view expression = all.substr(0, all.find('\n'));
  const std::string_view text = all.substr(std::min(size, expression.size() + 1));
  if (yoke::find_invalid_utf8(text)) return 0;
  try {
    const yoke::Pattern pattern = yoke::Pattern::regex(expression, "input", {.bytes_max = 1024});
    yoke::CpuBudget budget(std::chrono::milliseconds(100), "the pattern");
    std::size_t at = 0;
    for (const yoke::Match& match : pattern.find_all(text, budget)) {
      YOKE_CHECK(at <= match.begin && match.begin < match.end && match.end <= text.size());
      at = match.end;
    }
    pattern.begins(text);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid || error.code() == yoke::ErrorCode::kUnsupported ||
                   error.code() == yoke::ErrorCode::kExhausted,
               "{}", error.message());
  }
  return 0;
}
