// What two trees of files do not share, for tests.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::tests {

// "= /path" where the content differs, "+ /path" and "- /path" where only one side has it.
inline std::vector<std::string> differences(const MemoryTree& from, const MemoryTree& to) {
  std::vector<std::string> found;
  for (const auto& [path, entry] : from.entries()) {
    const auto other = to.entries().find(path);
    if (other == to.entries().end()) {
      found.push_back("- " + path);
    } else if (other->second.kind != entry.kind || other->second.content != entry.content) {
      found.push_back("= " + path);
    }
  }
  for (const auto& [path, entry] : to.entries()) {
    if (!from.entries().contains(path)) found.push_back("+ " + path);
  }
  return found;
}

}  // namespace yoke::tests
