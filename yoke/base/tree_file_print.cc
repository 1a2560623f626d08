// A tree as the text of a tree file, and as real files.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/base/tree_rules.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

using namespace tree_rules;

constexpr std::array<std::string_view, 4> kWords = {"in", "include", "move", "-"};

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte >= 0x7F) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// A name or a target, quoted where it has to be.
std::string as_word(const std::string& text) {
  const bool bare = !text.empty() && tree_rules::is_plain(text) &&
                    text.find_first_of(" \t\n\"\\") == std::string::npos && !text.starts_with('#') &&
                    std::find(kWords.begin(), kWords.end(), text) == kWords.end();
  return bare ? text : quote(text);
}

std::string print_file(const std::string& name, const std::string& content) {
  if (content.empty() || content.back() != '\n' || !tree_rules::is_plain(content)) {
    return fmt::format("{} : {}\n", name, quote(content));
  }
  std::vector<std::string> lines = split(std::string_view(content).substr(0, content.size() - 1), '\n');
  if (lines.size() == 1 && trim(lines[0]) == lines[0]) {
    return fmt::format("{} ={}{}\n", name, lines[0].empty() ? "" : " ", lines[0]);
  }
  std::string text = name + " <<\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // An empty line belongs to the file if an indented one follows; so the last is indented even if it is empty.
    if (!lines[i].empty() || i + 1 == lines.size()) text += "  " + lines[i];
    text += '\n';
  }
  return text;
}

// The target as it is written below a real folder, so that it cannot lead out. Only leading ".." are certain: they
// start from the link's own folder, which is no link, while "x/.." goes wherever x leads.
std::string contained_target(const std::string& path, const std::string& target) {
  const auto depth = std::count(path.begin(), path.end(), '/') - 1;
  const bool absolute = target.starts_with('/');
  std::string written;
  for (std::ptrdiff_t i = 0; absolute && i < depth; ++i) written += "../";
  std::ptrdiff_t up = 0;
  bool named = absolute;
  for (const std::string& part : split(target, '/')) {
    if (part == "..") ++up;
    if (part == ".." && (named || up > depth)) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("the link '{}' to '{}' could lead out of the tree", printable(path), printable(target)),
                  "'..' may only stand at the front, and not go above the root");
    }
    named = named || (!part.empty() && part != "." && part != "..");
  }
  written += absolute ? target.substr(std::min(target.find_first_not_of('/'), target.size())) : target;
  return written.empty() ? "." : written;
}

}  // namespace

std::string print_tree(const MemoryTree& tree) {
  tree_rules::require_sound(tree.entries());
  std::string text;
  std::optional<std::string> folder;
  for (const auto& [path, entry] : tree.entries()) {
    const std::string parent = tree_rules::parent_of(path);
    if (folder != parent) {
      text += fmt::format("{}in {}\n", text.empty() ? "" : "\n", parent.empty() ? "/" : as_word(parent));
      folder = parent;
    }
    const std::string name = as_word(path.substr(parent.size() + 1));
    if (entry.kind == tree_rules::Entry::Kind::kFile) {
      text += print_file(name, entry.content);
    } else {
      text += fmt::format("{} -> {}\n", name, as_word(entry.content));
    }
  }
  return text;
}

void write_tree(const MemoryTree& tree, const fs::path& folder) {
  tree_rules::require_sound(tree.entries());
  std::vector<std::pair<fs::path, std::string>> links;  // all are looked at before anything is written
  for (const auto& [path, entry] : tree.entries()) {
    if (entry.kind != tree_rules::Entry::Kind::kLink) continue;
    links.emplace_back(folder / path.substr(1), contained_target(path, entry.content));
  }
  try {
    make_folder(folder);
    if (!fs::is_empty(folder)) {
      throw Error(ErrorCode::kConflict, fmt::format("{} is not empty", folder.native()), "name a new folder");
    }
    for (const auto& [path, entry] : tree.entries()) {
      const fs::path file = folder / path.substr(1);
      make_folder(file.parent_path());
      if (entry.kind == tree_rules::Entry::Kind::kFile) {
        write_all(open_file(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW), entry.content, file);
      }
    }
    for (const auto& [link, target] : links) fs::create_symlink(target, link);
  } catch (const fs::filesystem_error& error) {
    throw system_error(error.code().value(), fmt::format("cannot write {}", error.path1().native()));
  }
}

}  // namespace yoke
