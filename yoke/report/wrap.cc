#include "yoke/report/wrap.h"

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/text.h"

namespace yoke::report {
namespace {

// One line of the input in printable form: what is left has only valid UTF-8 and no control characters.
std::string clean_line(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::replace(line.begin(), line.end(), '\t', ' ');
  return printable(line, kUnlimitedWidth);
}

// The offset behind the first `columns` characters.
std::size_t offset_of_column(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t column = 0; at < text.size(); ++at) {
    const bool starts_character = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (starts_character && column++ == columns) break;
  }
  return at;
}

// Where to cut a text that is too wide: at the last space that lets the first line fit, else within the word, where a
// path or a list is best cut behind a separator.
std::size_t find_break(std::string_view text, std::size_t width) {
  const std::size_t limit = offset_of_column(text, width);
  const std::size_t first_word = text.find_first_not_of(' ');
  const std::size_t space = text.rfind(' ', limit);
  if (space != std::string_view::npos && space >= first_word) return space;
  const std::size_t separator = text.substr(0, limit).find_last_of("/,;");
  return separator != std::string_view::npos && separator >= limit / 2 ? separator + 1 : limit;
}

void wrap_line(std::string_view rest, std::size_t width, std::vector<std::string>& lines) {
  while (count_columns(rest) > width) {
    const std::size_t cut = find_break(rest, width);
    std::string_view line = rest.substr(0, cut);
    line.remove_suffix(line.size() - (line.find_last_not_of(' ') + 1));
    // An indentation that fills the whole line alone says nothing.
    if (!line.empty()) lines.emplace_back(line);
    rest.remove_prefix(cut);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  lines.emplace_back(rest);
}

}  // namespace

std::vector<std::string> wrap_text(std::string_view text, std::size_t width) {
  YOKE_CHECK_GT(width, 0U);
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) wrap_line(clean_line(line), width, lines);
  return lines;
}

std::size_t widest(const std::vector<std::string>& lines) {
  std::size_t width = 0;
  for (const std::string& line : lines) width = std::max(width, count_columns(line));
  return width;
}

std::string pad_text(std::string_view text, std::size_t width, TextAlign align) {
  const std::size_t columns = count_columns(text);
  const std::size_t missing = width > columns ? width - columns : 0;
  std::size_t before = 0;
  if (align == TextAlign::kRight) before = missing;
  if (align == TextAlign::kCentre) before = missing / 2;
  return std::string(before, ' ').append(text).append(missing - before, ' ');
}

std::string wrapped_paragraph(std::string_view text, std::size_t width) {
  std::string paragraph;
  if (text.empty()) return paragraph;
  for (const std::string& line : wrap_text(text, width)) paragraph.append(line).push_back('\n');
  return paragraph;
}

}  // namespace yoke::report
