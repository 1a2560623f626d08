#include "yoke/bench/size.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "yoke/base/text.h"

namespace yoke::bench {
namespace {

std::optional<double> factor_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1.0;
  double factor = 0;
  switch (suffix.front()) {
    case 'K':
    case 'k':
      factor = 0x1p10;
      break;
    case 'M':
    case 'm':
      factor = 0x1p20;
      break;
    case 'G':
    case 'g':
      factor = 0x1p30;
      break;
    default:
      return std::nullopt;
  }
  const std::string_view rest = suffix.substr(1);
  if (rest.empty() || rest == "B" || rest == "b" || rest == "iB") return factor;
  return std::nullopt;
}

}  // namespace

Result<Bytes> parse_size(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return Unexpected(Error(ErrorCode::kUsage, fmt::format("'{}' {}", printable(text, 40), why),
                            "a size is a number of bytes with K, M or G for powers of 1024, such as 8, 64K or 1.5M"));
  };
  const std::string_view trimmed = trim(text);
  double number = 0;
  const auto [end, failure] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (failure == std::errc::result_out_of_range) return refuse("is no size that a machine could have");
  if (failure != std::errc{} || !std::isfinite(number)) return refuse("is not a size");
  if (number < 0 || std::signbit(number)) return refuse("is a negative size");
  const auto used = static_cast<std::size_t>(end - trimmed.data());
  const auto factor = factor_of(trim(trimmed.substr(used)));
  if (!factor) return refuse("is not a size");
  const double bytes = number * *factor;
  if (bytes > 0x1p62) return refuse("is no size that a machine could have");
  return Bytes{static_cast<std::int64_t>(bytes)};
}

}  // namespace yoke::bench
