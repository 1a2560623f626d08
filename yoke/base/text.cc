#include "yoke/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace yoke {
namespace {

// The length of the valid sequence at the start, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;   // no overlong forms
    const unsigned high = first == 0xED ? 0x9F : 0xBF;  // no surrogates
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;  // nothing above U+10FFFF
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// Optimal string alignment: insert, delete, replace, and swap of two neighbours cost one each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::size_t count_columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::optional<std::string> nearest(std::string_view wrong, std::span<const std::string> words) {
  if (wrong.empty() || wrong.size() > 64) return std::nullopt;
  const std::string* best = nullptr;
  // A third of the letters may be wrong: "stauts" is status, "foo" is not "node".
  std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const std::string& word : words) {
    const bool starts = wrong.size() >= 3 && word.starts_with(wrong);
    const std::size_t distance = starts ? 1 : edit_distance(wrong, word);
    if (distance < best_distance) {
      best = &word;
      best_distance = distance;
    }
  }
  if (!best) return std::nullopt;
  return *best;
}

std::string suggest(std::string_view wrong, std::span<const std::string> words, std::string_view plural) {
  if (const auto meant = nearest(wrong, words)) return fmt::format("did you mean '{}'?", *meant);
  return fmt::format("the {} are {}", plural, fmt::join(words, ", "));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    if (shown.size() >= most) return shown + "…";
    const std::size_t length = utf8_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    // U+0080 to U+009F are control characters too: some terminals take U+009B for the start of an escape sequence.
    const bool is_c1 = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (length == 0 || byte < 0x20 || byte == 0x7F || is_c1) {
      shown += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  return shown;
}

}  // namespace yoke
