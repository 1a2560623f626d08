// JSON text to Document and back. The parser is strict (RFC 8259: no comments, no trailing commas, no NUL byte, valid
// UTF-8, unique keys) and bounded in depth and values (limits.h); an Error names line and column.
#pragma once
#include <string>
#include <string_view>

#include "yoke/base/document.h"

namespace yoke {

Document parse_json(std::string_view text, std::string_view source);

// Whether the text has JSON's syntax; parse_json asks for more. For lines that mostly are something else: an Error
// takes ten times as long.
bool is_json(std::string_view text);

enum class JsonLayout { kIndented, kOneLine };
// Broken UTF-8 in a text is replaced, never an error: what we print must arrive.
std::string print_json(const Document& document, JsonLayout layout = JsonLayout::kIndented);

}  // namespace yoke
