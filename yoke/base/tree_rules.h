// What a tree of files (tree_file.h) may hold, for those who read one and those who write one.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::tree_rules {

using Entry = MemoryTree::Entry;
using Entries = std::map<std::string, tree_rules::Entry>;

// Everything below a folder, as a range of a sorted map: '0' is the character after '/'.
template <class Map>
auto below(Map& map, const std::string& path) {
  return std::pair(map.lower_bound(path + "/"), map.lower_bound(path + "0"));
}

std::string join(const std::vector<std::string>& parts);
std::string parent_of(const std::string& path);

// What is wrong with a path in normal form ("/a/b"), or nothing.
std::optional<std::string> complaint_about(const std::string& path);
std::optional<std::string> complaint_about_target(const std::string& target);

// The file or link that stands where the path needs a folder, or nothing.
const tree_rules::Entries::value_type* blocker_of(const tree_rules::Entries& entries, const std::string& path);
std::string blocked(const tree_rules::Entries::value_type& by);  // as a message

void require_sound(const tree_rules::Entries& entries);

bool is_control(char c);
// Text that may stand in a tree file as it is.
bool is_plain(std::string_view text);

}  // namespace yoke::tree_rules
