#include "yoke/probe/recording_tree.h"

#include <algorithm>

#include "yoke/base/text.h"
#include "yoke/probe/system_facts.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel's own limit

std::string keep_lines(const std::string& content, bool (*keep)(std::string_view line)) {
  std::string kept;
  for (const std::string& line : split(content, '\n')) {
    if (!line.empty() && keep(line)) kept += line + "\n";
  }
  return kept;
}

// Written again: beside a variable of ours may stand one with a token in it.
std::string only_network_exports(const std::string& content) {
  std::string kept;
  for (const Assignment& line : parse_exports(content)) {
    if (!is_network_variable(line.name)) continue;
    std::string quoted;
    for (const char c : line.value) quoted += c == '\'' ? "'\"'\"'" : std::string(1, c);
    kept += "export " + line.name + "='" + quoted + "'\n";
  }
  return kept;
}

// What of a file goes into a capture, which people send to others.
std::string without_secrets(const std::string& path, const std::string& content) {
  if (path == "/etc/dgx-release") {
    return keep_lines(content, [](std::string_view line) { return line.find("SERIAL") == std::string_view::npos; });
  }
  if (path == "/etc/environment" || path.ends_with("nccl.conf")) {
    return keep_lines(content, [](std::string_view line) {
      return is_network_variable(without_export(trim(line.substr(0, line.find('=')))));
    });
  }
  const bool shell = path.starts_with("/etc/profile.d/") || path.ends_with("/.profile") || path.ends_with("/.bashrc");
  if (shell) return only_network_exports(content);
  return content;
}

std::string join(const std::string& folder, const std::string& name) {
  return (folder == "/" ? "" : folder) + "/" + name;
}

}  // namespace

std::string RecordingTree::follow(std::string_view path) const {
  std::vector<std::string> todo = split(path, '/');
  std::reverse(todo.begin(), todo.end());
  std::string done = "/";
  for (int links = 0; !todo.empty();) {
    const std::string part = todo.back();
    todo.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      done.erase(std::max<std::size_t>(done.rfind('/'), 1));
      continue;
    }
    const std::string here = join(done, part);
    // "self" is a link to a number that is another one each time; in a capture it is the folder itself.
    const std::optional<std::string> target = here == "/proc/self" ? std::nullopt : inner_.link(here);
    if (!target || ++links > kMaxLinks) {
      done = here;
      continue;
    }
    links_[here] = *target;
    if (target->starts_with('/')) done = "/";
    std::vector<std::string> more = split(*target, '/');
    todo.insert(todo.end(), more.rbegin(), more.rend());
  }
  return done;
}

std::optional<std::string> RecordingTree::read(std::string_view path) const {
  std::optional<std::string> content = inner_.read(path);
  if (content) {
    std::string real = follow(path);
    // By both names: a link ("~/.bashrc" into a folder of one's own) is no way around.
    files_[real] = without_secrets(real, without_secrets(std::string(path), *content));
  }
  return content;
}

std::vector<std::string> RecordingTree::list(std::string_view path) const {
  std::vector<std::string> names = inner_.list(path);
  if (names.empty()) return names;
  const std::string real = follow(path);
  for (const std::string& name : names) {
    const std::string entry = join(real, name);
    if (const auto target = inner_.link(entry)) links_[entry] = *target;
    seen_.insert(entry);
  }
  return names;
}

std::optional<std::string> RecordingTree::link(std::string_view path) const {
  std::optional<std::string> target = inner_.link(path);
  if (target) follow(path);
  return target;
}

std::optional<std::string> RecordingTree::resolve(std::string_view path) const {
  follow(path);
  return inner_.resolve(path);
}

bool RecordingTree::exists(std::string_view path) const {
  if (!inner_.exists(path)) return false;
  seen_.insert(follow(path));
  return true;
}

MemoryTree RecordingTree::recorded() const {
  MemoryTree tree;
  for (const auto& [path, target] : links_) tree.add_link(path, target);
  for (const auto& [path, content] : files_) tree.add_file(path, content);
  // What was only seen becomes an empty file, unless it is a folder with something in it.
  for (auto path = seen_.rbegin(); path != seen_.rend(); ++path) {
    if (*path != "/" && !tree.entries().contains(*path) && tree.list(*path).empty()) tree.add_file(*path, "");
  }
  return tree;
}

}  // namespace yoke::probe
