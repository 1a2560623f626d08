#include "yoke/report/xml.h"

#include <algorithm>

#include "yoke/base/text.h"

namespace yoke::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void append_escaped(char c, std::string& escaped) {
  switch (c) {
    case '&':
      escaped += "&amp;";
      return;
    case '<':
      escaped += "&lt;";
      return;
    case '>':
      escaped += "&gt;";
      return;
    case '"':
      escaped += "&quot;";
      return;
    case '\'':
      escaped += "&#39;";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  const bool allowed = byte >= 0x20 || c == '\t' || c == '\n' || c == '\r';
  if (allowed) {
    escaped += c;
  } else {
    escaped += kReplacement;
  }
}

void append_valid(std::string_view text, std::string& escaped) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\xEF\xBF\xBE") || rest.starts_with("\xEF\xBF\xBF")) {
      escaped += kReplacement;
      at += 2;
    } else {
      append_escaped(text[at], escaped);
    }
  }
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t valid = find_invalid_utf8(text).value_or(text.size());
    append_valid(text.substr(0, valid), escaped);
    if (valid < text.size()) escaped += kReplacement;
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
  return escaped;
}

}  // namespace yoke::report
