// What a node answers is checked before it is used: a program of another version, or a hostile one, may be there.
#pragma once
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/fleet/node.h"

namespace yoke::fleet {

// Throws Error(kInvalid) with the node's name unless there is one item for each that was asked for.
inline void require_count(std::size_t given, std::size_t wanted, std::string_view what, const Node& node) {
  if (given == wanted) return;
  throw Error(ErrorCode::kInvalid,
              fmt::format("{} answered with {} {} instead of {}", node.name(), given, what, wanted),
              "is the program there damaged? 'yoke cluster reach --copy' replaces it");
}

template <class T>
std::vector<T> list_of(const Document& answer, std::size_t wanted, std::string_view what, const Node& node) {
  auto items = from_json<std::vector<T>>(answer);
  require_count(items.size(), wanted, what, node);
  return items;
}

}  // namespace yoke::fleet
