// For tests only: a strict little checker of XML, which knows just what our documents may use. It reads tags, quoted
// attributes, the five entities and decimal references, and one DOCTYPE; no comments, no CDATA, no namespaces.
//
//   EXPECT_EQ(find_xml_error("<a><b/></a>"), std::nullopt);
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/text.h"

namespace yoke::report {

class XmlChecker {
 public:
  explicit XmlChecker(std::string_view text) : rest_(text) {}

  std::optional<std::string> find_error() {
    if (const auto at = find_invalid_utf8(rest_)) return fmt::format("byte {} is not UTF-8", *at);
    constexpr std::string_view kDoctype = "<!DOCTYPE html>\n";
    if (rest_.starts_with(kDoctype)) rest_.remove_prefix(kDoctype.size());
    while (!rest_.empty() && error_.empty()) {
      if (rest_[0] == '<') {
        read_tag();
      } else {
        read_text(rest_.substr(0, rest_.find('<')));
      }
    }
    if (error_.empty() && !open_.empty()) fail(fmt::format("<{}> is never closed", open_.back()));
    if (error_.empty() && roots_ != 1) fail(fmt::format("{} root elements", roots_));
    return error_.empty() ? std::nullopt : std::optional(error_);
  }

 private:
  void fail(const std::string& what) {
    if (error_.empty()) error_ = what + " before: " + printable(rest_, 60);
  }

  static bool is_name(std::string_view name) {
    return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '-'; });
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  void read_text(std::string_view text) {
    if (open_.empty() && !trim(text).empty()) fail("text outside of the root");
    check_characters(text);
    take(text.size());
  }

  void check_characters(std::string_view text) {
    static const std::set<std::string_view> kEntities = {"amp", "lt", "gt", "quot", "#39"};
    for (std::size_t at = 0; at < text.size(); ++at) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x20 && text[at] != '\t' && text[at] != '\n' && text[at] != '\r')
        fail(fmt::format("control character {}", byte));
      if (text.substr(at).starts_with("\xEF\xBF\xBE")) fail("U+FFFE");
      if (text.substr(at).starts_with("\xEF\xBF\xBF")) fail("U+FFFF");
      if (text[at] == '<') fail("a bare <");
      if (text[at] != '&') continue;
      const std::size_t end = text.find(';', at);
      if (end == std::string_view::npos || !kEntities.contains(text.substr(at + 1, end - at - 1))) fail("a bare &");
    }
  }

  void read_tag() {
    take(1);
    if (rest_.starts_with('/')) {
      const std::string_view name = take(rest_.find('>')).substr(1);
      if (open_.empty() || open_.back() != name) return fail(fmt::format("</{}> closes nothing", name));
      open_.pop_back();
      take(1);
      return;
    }
    const std::string name(take(rest_.find_first_of(" />\n")));
    if (!is_name(name)) return fail(fmt::format("'{}' is no tag", name));
    if (open_.empty()) ++roots_;
    std::set<std::string> attributes;
    while (rest_.starts_with(' ') && error_.empty()) read_attribute(attributes);
    if (rest_.starts_with("/>")) {
      take(2);
    } else if (rest_.starts_with('>')) {
      take(1);
      open_.push_back(name);
    } else {
      fail(fmt::format("<{}> does not end", name));
    }
  }

  void read_attribute(std::set<std::string>& seen) {
    take(1);
    const std::string name(take(rest_.find('=')));
    if (!is_name(name)) return fail(fmt::format("'{}' is no attribute", name));
    if (!seen.insert(name).second) return fail(fmt::format("{} is given twice", name));
    if (!rest_.starts_with("=\"")) return fail(fmt::format("{} has no quotes", name));
    take(2);
    const std::size_t end = rest_.find('"');
    if (end == std::string_view::npos) return fail(fmt::format("{} does not end", name));
    check_characters(rest_.substr(0, end));
    take(end + 1);
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  int roots_ = 0;
  std::string error_;
};

inline std::optional<std::string> find_xml_error(std::string_view text) { return XmlChecker(text).find_error(); }

// Pieces that break documents which do not escape: markup, entities, quotes, control characters, broken UTF-8.
inline std::vector<std::string> hostile_pieces() {
  return {"<",
          ">",
          "&",
          "\"",
          "'",
          "]]>",
          "<!--",
          "</title>",
          "</style>",
          "&amp",
          "&#0;",
          "\xFF",
          "\xC3",
          "é",
          "\xED\xA0\x80",
          "\xEF\xBF\xBF",
          std::string(1, '\0'),
          "\x1B[31m",
          "\n",
          "\r\n",
          "\t",
          " ",
          "漢",
          "word",
          "{}",
          "%s",
          "</svg>",
          "\x7F",
          "=",
          "\xF5 x",
          "\xEF\xBF\xBE",
          "\\x",
          "\xC2\x9B",
          "/",
          "",
          "-"};
}

}  // namespace yoke::report
