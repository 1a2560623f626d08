#include "yoke/launch/memory_gauge.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

using Page = std::array<char, 8192>;

// From the beginning, however often; empty where it cannot be read.
std::string_view read_again(const UniqueFd& fd, Page& page) {
  if (!fd) return {};
  const ssize_t count = pread(fd.get(), page.data(), page.size(), 0);
  return count > 0 ? std::string_view(page.data(), static_cast<std::size_t>(count)) : std::string_view();
}

std::int64_t leading_number(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  std::int64_t value = -1;
  const auto result = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return result.ec == std::errc{} ? value : -1;
}

UniqueFd open_if_there(const std::string& file) { return UniqueFd(open(file.c_str(), O_RDONLY | O_CLOEXEC)); }

// Version 1 says "no limit" by a number near the largest there is.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

}  // namespace

std::int64_t number_after(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(name)) return leading_number(text.substr(at + name.size()));
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  return -1;
}

MemoryGauge::MemoryGauge()
    : meminfo_(open_if_there("/proc/meminfo")), pressure_(open_if_there("/proc/pressure/memory")) {
  Page page;
  const std::int64_t kib = number_after(read_again(meminfo_, page), "MemTotal:");
  total_ = kib > 0 ? kib * 1024 : 0;
  add_groups();
}

void MemoryGauge::add_groups() {
  const auto text = try_to([] { return read_file("/proc/self/cgroup", Bytes{1 << 16}); });
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');  // "0::/user.slice" or "9:memory:/docker/…"
    if (parts.size() < 3) continue;
    const bool version2 = parts[0] == "0" && parts[1].empty();
    if (!version2 && parts[1] != "memory") continue;
    const std::string root = version2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = parts[2] == "/" ? "" : parts[2];; path.erase(std::min(path.rfind('/'), path.size()))) {
      const std::string folder = root + path + "/";
      Group group{.limit = open_if_there(folder + (version2 ? "memory.max" : "memory.limit_in_bytes")),
                  .usage = open_if_there(folder + (version2 ? "memory.current" : "memory.usage_in_bytes")),
                  .stat = open_if_there(folder + "memory.stat"),
                  .version2 = version2};
      if (group.limit && group.usage) groups_.push_back(std::move(group));
      if (path.empty()) break;
    }
  }
}

std::int64_t MemoryGauge::left_in(const Group& group) const {
  Page page;
  const std::int64_t limit = leading_number(read_again(group.limit, page));
  if (limit < 0 || limit >= kNoLimit) return -1;
  const std::int64_t usage = leading_number(read_again(group.usage, page));
  if (usage < 0) return -1;
  // Pages of files are given back before anything fails.
  const std::string_view stat = read_again(group.stat, page);
  const std::int64_t inactive = number_after(stat, group.version2 ? "inactive_file " : "total_inactive_file ");
  const std::int64_t active = number_after(stat, group.version2 ? "active_file " : "total_active_file ");
  const std::int64_t cache = std::max<std::int64_t>(inactive, 0) + std::max<std::int64_t>(active, 0);
  return std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, usage - cache));
}

std::int64_t MemoryGauge::available() const {
  Page page;
  const std::int64_t kib = number_after(read_again(meminfo_, page), "MemAvailable:");
  std::int64_t least = kib >= 0 ? kib * 1024 : -1;
  for (const Group& group : groups_) {
    const std::int64_t left = left_in(group);
    if (left >= 0 && (least < 0 || left < least)) least = left;
  }
  return least;
}

double MemoryGauge::full_pressure() const {
  Page page;
  const std::string_view text = read_again(pressure_, page);
  const std::size_t at = text.find("full avg10=");
  if (at == std::string_view::npos) return -1;
  char* end = nullptr;
  const std::string number(text.substr(at + 11, 8));
  const double value = std::strtod(number.c_str(), &end);
  return end == number.c_str() ? -1 : value;
}

}  // namespace yoke::launch
