#include "yoke/plan/words.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::plan {
namespace {

double scale_of(std::string_view ending) {
  if (ending.empty()) return 1;
  if (ending == "k" || ending == "K") return 1024;
  if (ending == "M") return 1e6;
  if (ending == "B" || ending == "G") return 1e9;
  if (ending == "T") return 1e12;
  return 0;
}

int side_of(std::string_view text) {
  int side = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), side);
  const bool is_complete = failure == std::errc{} && end == text.data() + text.size();
  return is_complete && side >= 64 && side <= 16384 && side % 16 == 0 ? side : 0;
}

}  // namespace

double parse_count(std::string_view text, std::string_view what) {
  const std::string_view word = trim(text);
  double value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  const std::string_view ending(end, static_cast<std::size_t>(word.data() + word.size() - end));
  const double count = std::floor(value * scale_of(ending));
  if (failure != std::errc{} || !(count >= 1) || count > 1e16) {
    throw Error(ErrorCode::kUsage, fmt::format("{} cannot be '{}'", what, printable(text, 40)),
                "a number above zero, such as 4096, 128k, 15B or 1T");
  }
  return count;
}

std::pair<double, double> parse_image_size(std::string_view text) {
  const std::string_view word = trim(text);
  const std::size_t x = word.find('x');
  const int width = side_of(word.substr(0, x));
  const int height = x == std::string_view::npos ? width : side_of(word.substr(x + 1));
  if (width == 0 || height == 0) {
    throw Error(ErrorCode::kUsage, fmt::format("--size cannot be '{}'", printable(text, 40)),
                "such as 1024x1024: multiples of 16 from 64 to 16384");
  }
  return {width, height};
}

}  // namespace yoke::plan
