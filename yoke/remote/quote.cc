#include "yoke/remote/quote.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::remote {
namespace {

// Never special anywhere in a word. '~' and '=' are, at the start and in the first word.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./:,+@-").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quote(std::string_view word) {
  if (word.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::kInvalid, fmt::format("'{}' holds a zero byte and cannot be an argument", printable(word)));
  }
  if (word.empty()) return "''";
  std::string quoted;
  bool inside = false;
  const auto set_inside = [&](bool wanted) {
    if (inside != wanted) quoted += '\'';
    inside = wanted;
  };
  // From the first letter on where no character needs a backslash: 'two words', not two' words'.
  if (word.find_first_of("'\\!") == std::string_view::npos)
    set_inside(!std::all_of(word.begin(), word.end(), is_plain));
  for (const char c : word) {
    if (c == '\'' || c == '\\' || c == '!') {
      set_inside(false);
      quoted += '\\';
    } else if (!is_plain(c)) {
      set_inside(true);
    }
    quoted += c;
  }
  set_inside(false);
  return quoted;
}

std::string shell_join(std::span<const std::string> words) {
  std::string joined;
  for (const std::string& word : words) {
    if (!joined.empty()) joined += ' ';
    joined += shell_quote(word);
  }
  return joined;
}

}  // namespace yoke::remote
