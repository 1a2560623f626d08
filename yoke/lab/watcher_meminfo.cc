#include "yoke/lab/watcher_meminfo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::lab {
namespace {

// In kB. Amounts that are no part of the memory in use, and so bounded by the total only.
constexpr std::array<std::string_view, 8> kBoundedByTotal = {"CommitLimit", "Committed_AS", "CmaTotal",    "CmaFree",
                                                             "DirectMap4k", "DirectMap2M",  "DirectMap1G", "Hugetlb"};
// Address space and page sizes: no amount of memory.
constexpr std::array<std::string_view, 4> kKept = {"VmallocTotal", "VmallocUsed", "VmallocChunk", "Hugepagesize"};
constexpr std::array<std::string_view, 5> kSwap = {"SwapTotal", "SwapFree", "SwapCached", "Zswap", "Zswapped"};

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "Cached:   20884120 kB" -> 20884120; nothing for a line without a unit (HugePages_Total), which counts pages.
std::optional<std::int64_t> parse_kilobytes(std::string_view value) {
  value = trim(value);
  if (!value.ends_with(" kB")) return std::nullopt;
  value = trim(value.substr(0, value.size() - 3));
  std::int64_t number = 0;
  const auto [rest, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failure != std::errc{} || rest != value.data() + value.size()) return std::nullopt;
  return number;
}

// A line of memory.stat: "inactive_file 4096".
std::int64_t find_stat(std::string_view stat, std::string_view name) {
  for (const std::string& line : split(stat, '\n')) {
    if (!line.starts_with(std::string(name) + " ")) continue;
    std::int64_t number = 0;
    std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), number);
    return number;
  }
  return 0;
}

}  // namespace

std::string lab_meminfo(const FileTree& real, Bytes limit, Bytes used) {
  const std::int64_t total = std::max<std::int64_t>(0, limit.value / 1024);
  const std::int64_t in_use = std::clamp<std::int64_t>(used.value / 1024, 0, total);
  // The kernel's columns. They also keep the text as long as before, so that one write replaces it as a whole.
  const auto line = [](std::string_view name, std::int64_t value) {
    return fmt::format("{:<15} {:>8} kB\n", std::string(name) + ":", value);
  };
  std::string text = line("MemTotal", total) + line("MemFree", total - in_use) + line("MemAvailable", total - in_use);
  bool has_swap = false;
  for (const std::string& old : split(real.read("/proc/meminfo").value_or(""), '\n')) {
    const std::size_t colon = old.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = old.substr(0, colon);
    if (name == "MemTotal" || name == "MemFree" || name == "MemAvailable") continue;
    has_swap = has_swap || name == "SwapTotal";
    const std::optional<std::int64_t> value = parse_kilobytes(old.substr(colon + 1));
    if (!value || contains(kKept, name)) {
      text += old + "\n";
    } else if (contains(kSwap, name)) {
      text += line(name, 0);
    } else {
      text += line(name, std::min(*value, contains(kBoundedByTotal, name) ? total : in_use));
    }
  }
  if (!has_swap) text += line("SwapTotal", 0) + line("SwapFree", 0);
  return text;
}

Bytes cgroup_memory_used(const std::filesystem::path& usage_file) {
  const std::string text = read_file(usage_file);
  std::int64_t usage = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), usage).ec != std::errc{}) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} holds no number", usage_file.native()));
  }
  const bool is_v2 = usage_file.filename() == "memory.current";
  const std::string stat = read_file(usage_file.parent_path() / "memory.stat");
  // What the kernel gives back before anything fails, read once or often (probe/available_memory.cc).
  const std::int64_t cache = is_v2 ? find_stat(stat, "inactive_file") + find_stat(stat, "active_file")
                                   : find_stat(stat, "total_inactive_file") + find_stat(stat, "total_active_file");
  return {std::max<std::int64_t>(0, usage - cache)};
}

}  // namespace yoke::lab
