// Small tools for text that several folders need: UTF-8 validity, the nearest of some words, splitting, trimming.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// The offset of the first byte that is not UTF-8 (overlong forms and surrogates are not), or nothing.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// How many terminal columns a text takes: one per code point, no zero-width or wide characters considered.
std::size_t count_columns(std::string_view text);

// The word that was probably meant: the nearest by edit distance (a swap of neighbours counts once), if near enough.
std::optional<std::string> nearest(std::string_view wrong, std::span<const std::string> words);
// As a hint: "did you mean 'nodes'?", or else "the keys are …".
std::string suggest(std::string_view wrong, std::span<const std::string> words, std::string_view plural);

// As std::string::find, in a time that grows with the sum of both sizes and not with their product.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);

// A variable's name as shells and programs take it: letters, digits and '_', with no digit first.
bool is_variable_name(std::string_view name);

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);

// A text of several lines as a terminal may show it: control characters other than newline and tab, and broken UTF-8,
// become escapes. What a node, a file or a capture says could otherwise move the cursor or rename the window.
std::string terminal_safe(std::string_view text);

// Safe to show on a terminal and to log: control characters and broken UTF-8 become escapes, long text is cut.
std::string printable(std::string_view text, std::size_t most = 200);

}  // namespace yoke
