#include "yoke/text/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

// How many bytes the first one announces, and which second bytes are good (no overlong forms, surrogates, or above
// U+10FFFF): the table 3-7 of the Unicode standard.
struct Lead {
  std::size_t length;
  unsigned second_low;
  unsigned second_high;
};
Lead lead(unsigned first) {
  if (first < 0x80) return {1, 0, 0};
  if (first >= 0xC2 && first <= 0xDF) return {2, 0x80, 0xBF};
  if (first >= 0xE0 && first <= 0xEF) return {3, first == 0xE0 ? 0xA0U : 0x80U, first == 0xED ? 0x9FU : 0xBFU};
  if (first >= 0xF0 && first <= 0xF4) return {4, first == 0xF0 ? 0x90U : 0x80U, first == 0xF4 ? 0x8FU : 0xBFU};
  return {0, 0, 0};
}

// The bytes at the start that can begin a character: all of it, or the longest good part.
std::size_t good_length(std::string_view bytes) {
  const Lead start = lead(byte_at(bytes, 0));
  std::size_t good = std::min<std::size_t>(start.length, 1);
  while (good < start.length) {
    const unsigned next = byte_at(bytes, good);
    const unsigned low = good == 1 ? start.second_low : 0x80U;
    const unsigned high = good == 1 ? start.second_high : 0xBFU;
    if (good >= bytes.size() || next < low || next > high) break;
    ++good;
  }
  return good;
}

std::string map_text(std::string_view text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("a text cannot be normalized: {}", utf8proc_errmsg(size)));
  }
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size)};
}

template <class Change>
std::string map_code_points(std::string_view text, Change change) {
  std::string mapped;
  mapped.reserve(text.size());
  while (!text.empty()) {
    append_utf8(mapped, change(code_point(text)));
    text.remove_prefix(utf8_length(text));
  }
  return mapped;
}

}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
  // Nothing below U+0300 composes, so most texts are in form C as they are; the bytes of U+0300 start with 0xCC.
  const bool composed_already =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
  const bool is_ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii || (composed_already && form == NormalForm::kNfc)) return std::string(text);
  switch (form) {
    case NormalForm::kNfc:
      return map_text(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    case NormalForm::kNfd:
      return map_text(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    case NormalForm::kNfkc:
      return map_text(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case NormalForm::kNfkd:
      return map_text(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  return std::string(text);
}

std::string lower_case(std::string_view text) {
  return map_code_points(
      text, [](char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); });
}
std::string upper_case(std::string_view text) {
  return map_code_points(
      text, [](char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); });
}

std::string replace_invalid_utf8(std::string_view bytes) {
  if (!find_invalid_utf8(bytes)) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    const std::size_t good = good_length(bytes);
    const bool whole = good != 0 && good == lead(byte_at(bytes, 0)).length;
    text += whole ? bytes.substr(0, good) : kReplacement;
    bytes.remove_prefix(std::max<std::size_t>(good, 1));
  }
  return text;
}

std::size_t incomplete_utf8_tail(std::string_view bytes) {
  for (std::size_t tail = 1; tail <= 3 && tail <= bytes.size(); ++tail) {
    const std::string_view end = bytes.substr(bytes.size() - tail);
    const std::size_t length = lead(byte_at(end, 0)).length;
    if (length > tail && good_length(end) == tail) return tail;
  }
  return 0;
}

std::size_t utf8_length(std::string_view text) {
  const std::size_t length = lead(byte_at(text, 0)).length;
  YOKE_CHECK(!text.empty() && length != 0 && length <= text.size(), "not UTF-8: '{}'", printable(text, 20));
  return length;
}

char32_t code_point(std::string_view text) {
  const std::size_t length = utf8_length(text);
  constexpr unsigned kFirstMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t value = byte_at(text, 0) & kFirstMask[length];
  for (std::size_t i = 1; i < length; ++i) value = (value << 6) | (byte_at(text, i) & 0x3FU);
  return value;
}

void append_utf8(std::string& text, char32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || c == 0x20;
  if (c == 0x85) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_word(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

std::string_view trim_start(std::string_view text) {
  while (!text.empty() && is_white_space(code_point(text))) text.remove_prefix(utf8_length(text));
  return text;
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (byte_at(text, start) & 0xC0U) == 0x80U) --start;
    if (!is_white_space(code_point(text.substr(start)))) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

}  // namespace yoke::text
