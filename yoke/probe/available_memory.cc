#include "yoke/probe/available_memory.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "yoke/base/text.h"

namespace yoke::probe {
namespace {

std::optional<std::int64_t> number_at_start(std::string_view text) {
  std::int64_t value = 0;
  text = trim(text);
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::int64_t> field_of(const FileTree& tree, std::string_view file, std::string_view name) {
  const auto text = tree.read(file);
  if (!text) return std::nullopt;
  for (const std::string& line : split(*text, '\n')) {
    if (line.starts_with(name)) return number_at_start(std::string_view(line).substr(name.size()));
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(const FileTree& tree, const std::string& file) {
  const auto text = tree.read(file);
  return text ? number_at_start(*text) : std::nullopt;  // "max" is no number: no limit
}

struct GroupFiles {
  std::string_view root, limit, usage, inactive_cache, active_cache;
};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ", "active_file "};
constexpr GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file ", "total_active_file "};

// What one group leaves. Pages of files are given back before anything fails, so they count as free: also those that
// were read twice and are therefore called active, as in the kernel's own MemAvailable. A model's files are such pages
// as soon as a second rank has loaded them.
std::optional<std::int64_t> left_in(const FileTree& tree, const GroupFiles& files, const std::string& folder) {
  const auto limit = number_in(tree, folder + "/" + std::string(files.limit));
  const auto usage = number_in(tree, folder + "/" + std::string(files.usage));
  if (!limit || !usage) return std::nullopt;
  const std::string stat = folder + "/memory.stat";
  const std::int64_t cache =
      field_of(tree, stat, files.inactive_cache).value_or(0) + field_of(tree, stat, files.active_cache).value_or(0);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *usage - cache));
}

// Calls for each control group around us, from ours up to the root: with its kind of files and its folder.
void for_each_group(const FileTree& tree, const std::function<void(const GroupFiles&, const std::string&)>& take) {
  const std::string groups = tree.read("/proc/self/cgroup").value_or("");
  for (const std::string& line : split(groups, '\n')) {
    const std::vector<std::string> parts = split(line, ':');  // "0::/user.slice" or "9:memory:/docker/…"
    if (parts.size() < 3) continue;
    const bool version2 = parts[0] == "0" && parts[1].empty();
    if (!version2 && parts[1] != "memory") continue;
    const GroupFiles& files = version2 ? kVersion2 : kVersion1;
    std::string path = parts[2] == "/" ? "" : parts[2];
    while (true) {
      take(files, std::string(files.root) + path);
      if (path.empty()) break;
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
}

// Keeps the least of what it gets.
struct Least {
  void consider(std::optional<std::int64_t> bytes) {
    if (bytes && (!value || *bytes < value->value)) value = Bytes{*bytes};
  }
  std::optional<Bytes> value;
};

}  // namespace

std::optional<Bytes> available_memory(const FileTree& tree) {
  Least least;
  if (const auto kib = field_of(tree, "/proc/meminfo", "MemAvailable:")) least.consider(*kib * 1024);
  for_each_group(
      tree, [&](const GroupFiles& files, const std::string& folder) { least.consider(left_in(tree, files, folder)); });
  return least.value;
}

std::optional<Bytes> total_memory(const FileTree& tree) {
  const auto kib = field_of(tree, "/proc/meminfo", "MemTotal:");
  return kib ? std::optional(Bytes{*kib * 1024}) : std::nullopt;
}

std::optional<Bytes> memory_limit(const FileTree& tree) {
  Least least;
  for_each_group(tree, [&](const GroupFiles& files, const std::string& folder) {
    // Version 1 says "no limit" by a number near the largest there is, not by a word.
    constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
    const auto limit = number_in(tree, folder + "/" + std::string(files.limit));
    if (limit && *limit < kNoLimit) least.consider(limit);
  });
  return least.value;
}

}  // namespace yoke::probe
