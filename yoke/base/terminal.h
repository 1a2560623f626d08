// What the terminal behind a descriptor can show: how wide it is, whether it takes escapes and colours. What is printed
// elsewhere, to a pipe or a file, does not depend on any of it.
#pragma once
#include <cstddef>
#include <optional>

namespace yoke {

// Nothing where this is no terminal. One that does not say how wide it is counts as 80 columns.
std::optional<std::size_t> terminal_columns(int fd);

// A terminal that can move its cursor and clear a line: any but TERM=dumb and one without TERM.
bool takes_escapes(int fd);
// The same, and the user did not forbid it by NO_COLOR (no-color.org).
bool takes_colour(int fd);

// Whether LC_ALL, LC_CTYPE or LANG, in this order, names UTF-8.
bool locale_is_utf8();

// The columns that text on standard output may take: the terminal's, or where there is none `elsewhere`.
std::size_t output_width(std::size_t elsewhere = 80);

}  // namespace yoke
