// Reading the parameters of an API's JSON with errors that name them, as OpenAI's do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::serve {

// Null and absent are the same everywhere in the API: a null pointer.
const Document* given_field(const Document& map, std::string_view key);

[[noreturn]] void refuse_type(std::string_view param, std::string_view wanted, const Document& got);
[[noreturn]] void refuse_value(std::string_view param, const std::string& why);

std::string api_text(const Document& value, std::string_view param);
bool api_bool(const Document& value, std::string_view param);
double api_number(const Document& value, std::string_view param, double min, double max);
std::int64_t api_integer(const Document& value, std::string_view param, std::int64_t min, std::int64_t max);

template <class T, class Read>
std::optional<T> read_given_field(const Document& map, std::string_view key, const Read& read) {
  const Document* const found = given_field(map, key);
  return found ? std::optional<T>(read(*found)) : std::nullopt;
}

// Throws for a key that is in none of the lists.
void check_known_fields(const Document& map, const std::vector<std::string_view>& known);

}  // namespace yoke::serve
