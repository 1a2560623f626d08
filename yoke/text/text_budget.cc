#include "yoke/text/text_budget.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/limits.h"

namespace yoke::text {
namespace {

// A program under a sanitizer takes about ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kSlowdown = 10;
#else
constexpr std::int64_t kSlowdown = 1;
#endif

std::chrono::nanoseconds time_allowed(std::size_t bytes) {
  return kSlowdown * (limits::kTextTime + static_cast<std::int64_t>(bytes) * limits::kTextTimePerByte);
}

std::size_t bytes_allowed(std::size_t bytes, TextBudget::Of of) {
  const bool is_token = of == TextBudget::Of::kToken;
  return limits::kTextGrowth * bytes + (is_token ? limits::kTokenGrowthBytes : limits::kTextGrowthBytes);
}

}  // namespace

TextBudget::TextBudget(std::size_t bytes, Of of)
    : bytes_max_(bytes_allowed(bytes, of)), cpu_(time_allowed(bytes), "the tokenizer") {}

void TextBudget::check_size(std::size_t bytes) const {
  if (bytes <= bytes_max_) return;
  throw Error(ErrorCode::kExhausted, fmt::format("the tokenizer makes more than {} bytes of the text", bytes_max_));
}

}  // namespace yoke::text
