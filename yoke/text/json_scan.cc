#include "yoke/text/json_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/text/unicode.h"

namespace yoke {

void JsonScan::refuse(std::string_view why) const {
  const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
  throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: {}", source_, line, why));
}

char JsonScan::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonScan::expect(char wanted) {
  if (peek() != wanted) refuse(fmt::format("'{}' is missing here", wanted));
  ++at_;
}

void JsonScan::for_each_field(const std::function<void(std::string key)>& handle) {
  expect('{');
  if (peek() == '}') {
    ++at_;
    return;
  }
  for (;;) {
    std::string key = text();
    expect(':');
    handle(std::move(key));
    if (peek() != ',') break;
    ++at_;
  }
  expect('}');
}

void JsonScan::for_each_item(const std::function<void()>& handle) {
  expect('[');
  if (peek() == ']') {
    ++at_;
    return;
  }
  for (;;) {
    handle();
    if (peek() != ',') break;
    ++at_;
  }
  expect(']');
}

unsigned JsonScan::hex4() {
  unsigned value = 0;
  const char* const begin = text_.data() + at_;
  if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, value, 16).ptr != begin + 4) {
    refuse("\\u must be followed by four hexadecimal digits");
  }
  at_ += 4;
  return value;
}

void JsonScan::escape(std::string& value) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  if (at_ >= text_.size()) refuse("the text is not closed");
  const char name = text_[at_++];
  if (const std::size_t known = kNames.find(name); known != std::string_view::npos) {
    value += kValues[known];
    return;
  }
  if (name != 'u') refuse("an unknown escape");
  char32_t code = hex4();
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") refuse("half of a surrogate pair");
    at_ += 2;
    const char32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) refuse("half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code <= 0xDFFF) {
    refuse("half of a surrogate pair");
  }
  append_utf8(value, code);
}

std::string JsonScan::text() {
  expect('"');
  std::string value;
  for (;;) {
    const std::size_t end = text_.find_first_of("\"\\", at_);
    if (end == std::string_view::npos) refuse("the text is not closed");
    value += text_.substr(at_, end - at_);
    at_ = end + 1;
    if (text_[end] == '"') break;
    escape(value);
  }
  if (find_invalid_utf8(value)) refuse("the text is not UTF-8");
  return value;
}

std::int64_t JsonScan::whole_number() {
  peek();
  std::int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [rest, failure] = std::from_chars(text_.data() + at_, end, value);
  if (failure != std::errc{}) refuse("a whole number is missing here");
  at_ = static_cast<std::size_t>(rest - text_.data());
  if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
    refuse("this number must be whole");
  }
  return value;
}

void JsonScan::skip_text() {
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) {
    at_ = text_.size();
    refuse("the text is not closed");
  }
  ++at_;
}

void JsonScan::skip() {
  std::size_t depth = 0;
  do {
    const char c = peek();
    if (c == '\0') refuse("the value is not closed");
    if (c == '"') {
      skip_text();
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at_;
    } else if (c == '}' || c == ']' || c == ',' || c == ':') {
      if (depth == 0) refuse("a value is missing here");
      if (c == '}' || c == ']') --depth;
      ++at_;
    } else {
      at_ = std::min(text_.find_first_of(" \n\t\r,:]}[{\"", at_), text_.size());
    }
  } while (depth > 0);
}

Document JsonScan::document() {
  peek();
  const std::size_t begin = at_;
  skip();
  return parse_json(text_.substr(begin, at_ - begin), source_);
}

bool JsonScan::at_list() { return peek() == '['; }

void JsonScan::end() {
  if (peek() != '\0' || at_ < text_.size()) refuse("nothing may follow the closing brace");
}

}  // namespace yoke
