#include "yoke/base/tree_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"

namespace yoke::tree_rules {

std::string join(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += "/" + part;
  return path;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::optional<std::string> complaint_about(const std::string& path) {
  if (path.empty() || path == "/") return "the root is a folder";
  if (path.size() > TreeFileLimits::kMaxPath) return "the path is too long";
  if (path.find('\0') != std::string::npos) return "a path cannot hold a NUL";
  for (const std::string& part : split(std::string_view(path).substr(1), '/')) {
    if (part == "..") return "a path cannot hold '..'";
    if (part.size() > TreeFileLimits::kMaxName) return "a name in the path is too long";
  }
  return std::nullopt;
}

std::optional<std::string> complaint_about_target(const std::string& target) {
  if (target.empty()) return "a link needs a target";
  if (target.size() > TreeFileLimits::kMaxPath) return "the link's target is too long";
  if (target.find('\0') != std::string::npos) return "a link's target cannot hold a NUL";
  return std::nullopt;
}

const tree_rules::Entries::value_type* blocker_of(const tree_rules::Entries& entries, const std::string& path) {
  for (std::string at = tree_rules::parent_of(path); !at.empty(); at = tree_rules::parent_of(at)) {
    if (const auto entry = entries.find(at); entry != entries.end()) return &*entry;
  }
  return nullptr;
}

std::string blocked(const tree_rules::Entries::value_type& by) {
  return fmt::format("'{}' is a {}, so nothing can lie below it", printable(by.first),
                     by.second.kind == tree_rules::Entry::Kind::kFile ? "file" : "link");
}

void require_sound(const tree_rules::Entries& entries) {
  for (const auto& [path, entry] : entries) {
    std::optional<std::string> complaint = tree_rules::complaint_about(path);
    if (!complaint && entry.kind == tree_rules::Entry::Kind::kLink)
      complaint = tree_rules::complaint_about_target(entry.content);
    const auto* by = complaint ? nullptr : tree_rules::blocker_of(entries, path);
    if (by) complaint = tree_rules::blocked(*by);
    if (complaint)
      throw Error(ErrorCode::kInvalid, fmt::format("the tree holds '{}': {}", printable(path), *complaint));
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

bool is_plain(std::string_view text) {
  return !find_invalid_utf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
    return tree_rules::is_control(c) && c != '\n' && c != '\t';
  });
}

}  // namespace yoke::tree_rules
