#include "yoke/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "yoke/base/limits.h"

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

// Optimal string alignment: insert, delete, replace, and swap of two neighbours cost one each. Three rows of the table
// are enough.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_before(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_before.swap(before);
    before.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
  }
  return row[b.size()];
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
  if (wrong.empty() || wrong.size() > limits::kMistypedBytes) return std::nullopt;
  const std::string* best = nullptr;
  // A third of the letters may be wrong: "stauts" is status, "foo" is not "node".
  std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const std::string& word : words) {
    if (word.size() > limits::kSuggestedBytes) continue;
    const bool starts = wrong.size() >= 3 && word.starts_with(wrong);
    // The distance is at least the difference of the lengths.
    const std::size_t longer = std::max(wrong.size(), word.size()) - std::min(wrong.size(), word.size());
    if (!starts && longer >= best_distance) continue;
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

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  // Two-way search, by the C library.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
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

namespace {

// What a terminal shows at the start of a text as it is: its length, or 0 where the first byte needs an escape.
std::size_t shown_length(std::string_view text) {
  const std::size_t length = utf8_length(text);
  const auto byte = static_cast<unsigned char>(text.front());
  // U+0080 to U+009F are control characters too: some terminals take U+009B for the start of an escape sequence.
  const bool is_c1 = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
  return byte < 0x20 || byte == 0x7F || is_c1 ? 0 : length;
}

// The next `length` bytes of `rest` as they are; where that is 0 its first byte as an escape. Returns how many were
// taken.
std::size_t append_shown(std::string& shown, std::string_view rest, std::size_t length) {
  if (length == 0) {
    shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest.front()));
    return 1;
  }
  shown += rest.substr(0, length);
  return length;
}

}  // namespace

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    if (shown.size() >= most) return shown + "…";
    at += append_shown(shown, text.substr(at), shown_length(text.substr(at)));
  }
  return shown;
}

std::string terminal_safe(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_layout = text[at] == '\n' || text[at] == '\t';
    at += append_shown(shown, text.substr(at), is_layout ? 1 : shown_length(text.substr(at)));
  }
  return shown;
}

}  // namespace yoke
