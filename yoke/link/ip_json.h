// Keys of what `ip -json` prints, which iproute2 leaves out where there is nothing to say; for .cc files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/fields.h"

namespace yoke::link {

template <class T>
T ip_value(const Document& map, std::string_view key, T otherwise = {}) {
  const Document* found = map.find(key);
  return found ? from_json<T>(*found) : otherwise;
}

}  // namespace yoke::link
