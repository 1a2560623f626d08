// Text cut into lines of a given width, as tables, plots and hints show it. Nothing but the spaces at a break is lost.
//
//   wrap_text("both halves of the cable", 11)  ->  {"both halves", "of the", "cable"}
//
// What comes out is safe on a terminal: control characters and broken UTF-8 are shown as escapes (see printable()).
#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::report {

inline constexpr std::size_t kTerminalWidth = 80;
inline constexpr std::size_t kUnlimitedWidth = std::numeric_limits<std::size_t>::max();

// A line break in the text begins a new line, and a tab counts as one space. A word that is wider than the width is
// broken between two characters. There is always at least one line.
std::vector<std::string> wrap_text(std::string_view text, std::size_t width);

// The width of the widest line.
std::size_t widest(const std::vector<std::string>& lines);

// The text filled up with spaces to the width; a wider text stays as it is.
enum class TextAlign { kLeft, kCentre, kRight };
std::string pad_text(std::string_view text, std::size_t width, TextAlign align);

// The wrapped text with a line break behind each line, or nothing for an empty text: titles and notes.
std::string wrapped_paragraph(std::string_view text, std::size_t width);

}  // namespace yoke::report
