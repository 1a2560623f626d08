// What the program's commands answered with --json, by a path of keys and places: number_at(doc, "rows.0.size"). What
// is not there is an Error that names the path, since a command that answers otherwise is not the one we know.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::gameday {

const Document* find_at(const Document& answer, std::string_view path);  // null pointer where there is nothing
const Document& list_at(const Document& answer, std::string_view path);
double number_at(const Document& answer, std::string_view path);
std::string text_at(const Document& answer, std::string_view path);

}  // namespace yoke::gameday
