// The alphabet of byte-level tokenizers: each byte has a printable character, so that a vocabulary of bytes is readable
// JSON. Bytes that are printable in Latin-1 stand for themselves, the other 68 are U+0100 to U+0143 in order: a space
// is 'Ġ', a newline 'Ċ'.
#pragma once
#include <string>
#include <string_view>

namespace yoke::text {

void append_byte_level(std::string& text, std::string_view bytes);

// The bytes that a token of this alphabet stands for; a token with a character outside of it stands for itself.
void append_bytes_of(std::string& bytes, std::string_view token);

}  // namespace yoke::text
