// The keys of a map that is being read, to find one that stands twice. A few are compared each with each; many have a
// table, or a file of 1 MB would take minutes.
#pragma once
#include <string>
#include <unordered_set>

#include "yoke/base/document.h"
#include "yoke/base/hash.h"

namespace yoke {

class KeySet {
 public:
  // False where the map has the key. `map` is always the same one, with all keys added so far but perhaps the last.
  bool add(const Document& map, const std::string& key) {
    constexpr std::size_t kFew = 16;
    if (map.fields.size() < kFew) return map.find(key) == nullptr;
    if (keys_.empty()) {
      for (const auto& [known, value] : map.fields) keys_.insert(known);
    }
    return keys_.insert(key).second;
  }

 private:
  std::unordered_set<std::string, SecretHash, std::equal_to<>> keys_;
};

}  // namespace yoke
