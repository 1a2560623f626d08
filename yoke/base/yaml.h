// A strict subset of YAML for files that people write: maps, lists and scalars, block or flow, with comments. Refused,
// each with its line: anchors and aliases (and with them YAML bombs), tags, merge keys, several documents, duplicate
// keys, keys that are not plain words, text that is not UTF-8, control characters, more than 1 MiB or 32 levels.
#pragma once
#include <string>
#include <string_view>

#include "yoke/base/document.h"

namespace yoke {

Document parse_yaml(std::string_view text, std::string_view source);

// The canonical form: two spaces, block form; what holds only scalars and stands in a list, and lists of scalars, in
// flow form on one line.
std::string print_yaml(const Document& document);

}  // namespace yoke
