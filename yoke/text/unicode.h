// Unicode as tokenizers and templates need it: code points in and out of UTF-8, normal forms, case, white space. All
// pure functions, safe from any thread. Texts are valid UTF-8 unless a function says that it takes any bytes.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace yoke::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::string normalize(std::string_view text, NormalForm form);
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

// Any bytes: each longest broken part of a sequence becomes one U+FFFD, as browsers and Python do it.
std::string replace_invalid_utf8(std::string_view bytes);
// Any bytes: how many at the end may be the start of a character whose other bytes are still to come (0 to 3).
std::size_t incomplete_utf8_tail(std::string_view bytes);

// The bytes of the character at the start of a text that is not empty.
std::size_t utf8_length(std::string_view text);
char32_t code_point(std::string_view text);
void append_utf8(std::string& text, char32_t code_point);

bool is_white_space(char32_t code_point);  // the property White_Space
bool is_word(char32_t code_point);         // letters, marks, digits and connectors, as \w

// Without the white space at the ends, of any script.
std::string_view trim_start(std::string_view text);
std::string_view trim_end(std::string_view text);

}  // namespace yoke::text
