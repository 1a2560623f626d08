#include "yoke/serve/api_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/serve/api_error.h"

namespace yoke::serve {
namespace {

std::string_view kind_word(const Document& value) {
  switch (value.kind) {
    case Document::Kind::kNull:
      return "null";
    case Document::Kind::kBool:
      return "a boolean";
    case Document::Kind::kNumber:
      return "a number";
    case Document::Kind::kList:
      return "an array";
    case Document::Kind::kMap:
      return "an object";
    default:
      return "a string";
  }
}

}  // namespace

const Document* given_field(const Document& map, std::string_view key) {
  const Document* const found = map.find(key);
  return found && found->kind != Document::Kind::kNull ? found : nullptr;
}

void refuse_type(std::string_view param, std::string_view wanted, const Document& got) {
  throw ApiError(400,
                 fmt::format("Invalid type for '{}': expected {}, but got {} instead.", param, wanted, kind_word(got)),
                 std::string(param), "invalid_type");
}

void refuse_value(std::string_view param, const std::string& why) {
  throw ApiError(400, fmt::format("Invalid value for '{}': {}", param, why), std::string(param), "invalid_value");
}

std::string api_text(const Document& value, std::string_view param) {
  if (value.kind != Document::Kind::kText) refuse_type(param, "a string", value);
  return value.text;
}

bool api_bool(const Document& value, std::string_view param) {
  if (value.kind != Document::Kind::kBool) refuse_type(param, "a boolean", value);
  return value.text == "true";
}

double api_number(const Document& value, std::string_view param, double min, double max) {
  if (value.kind != Document::Kind::kNumber) refuse_type(param, "a number", value);
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [rest, failure] = std::from_chars(value.text.data(), end, number);
  if (failure != std::errc{} || rest != end || !(number >= min && number <= max)) {
    refuse_value(param, fmt::format("it must be from {} to {}, not {}.", min, max, printable(value.text, 40)));
  }
  return number;
}

std::int64_t api_integer(const Document& value, std::string_view param, std::int64_t min, std::int64_t max) {
  if (value.kind != Document::Kind::kNumber) refuse_type(param, "an integer", value);
  std::string_view digits = value.text;
  if (digits.ends_with(".0")) digits.remove_suffix(2);
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, failure] = std::from_chars(digits.data(), end, number);
  if (failure == std::errc::invalid_argument || rest != end) {
    throw ApiError(400,
                   fmt::format("Invalid type for '{}': expected an integer, but got {} instead.", param,
                               printable(value.text, 40)),
                   std::string(param), "invalid_type");
  }
  if (failure != std::errc{} || number < min || number > max) {
    refuse_value(param, fmt::format("it must be from {} to {}, not {}.", min, max, printable(value.text, 40)));
  }
  return number;
}

void check_known_fields(const Document& map, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : map.fields) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string shown = printable(key, 60);
    throw ApiError(400, fmt::format("Unknown parameter: '{}'.", shown), shown, "unknown_parameter");
  }
}

}  // namespace yoke::serve
