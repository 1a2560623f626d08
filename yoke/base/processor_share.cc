#include "yoke/base/processor_share.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "yoke/base/text.h"

namespace yoke {
namespace {

std::optional<double> positive_number(std::string_view text) {
  double value = 0;
  text = trim(text);
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || rest != text.data() + text.size() || !(value > 0)) return std::nullopt;
  return value;
}

std::optional<double> ratio(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period) return std::nullopt;  // "max" and -1 are no numbers above 0: no limit
  return *quota / *period;
}

// "50000 100000", or "max 100000".
std::optional<double> version2_share(const FileTree& tree, const std::string& folder) {
  const auto text = tree.read_trimmed(folder + "/cpu.max");
  if (!text) return std::nullopt;
  const std::vector<std::string> parts = split(*text, ' ');
  return parts.size() == 2 ? ratio(positive_number(parts[0]), positive_number(parts[1])) : std::nullopt;
}

std::optional<double> version1_share(const FileTree& tree, const std::string& folder) {
  const auto quota = tree.read_trimmed(folder + "/cpu.cfs_quota_us");
  const auto period = tree.read_trimmed(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  return ratio(positive_number(*quota), positive_number(*period));
}

bool names_cpu(const std::string& controllers) {
  const std::vector<std::string> names = split(controllers, ',');
  return std::find(names.begin(), names.end(), "cpu") != names.end();
}

}  // namespace

int allowed_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

double quota_share(const FileTree& tree, double processors) {
  double share = processors;
  for (const std::string& line : split(tree.read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');  // "0::/user.slice" or "4:cpu,cpuacct:/docker/…"
    if (parts.size() < 3) continue;
    const bool version2 = parts[0] == "0" && parts[1].empty();
    if (!version2 && !names_cpu(parts[1])) continue;
    const std::string root = version2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + parts[1];
    std::string path = parts[2] == "/" ? "" : parts[2];
    while (true) {
      const auto limit = version2 ? version2_share(tree, root + path) : version1_share(tree, root + path);
      share = std::min(share, limit.value_or(share));
      const std::size_t slash = path.rfind('/');
      if (slash == std::string::npos) break;
      path.erase(slash);
    }
  }
  return share;
}

double processor_share(const FileTree& tree) { return quota_share(tree, allowed_processors()); }

}  // namespace yoke
