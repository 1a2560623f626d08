#include "yoke/bench/core_times.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "yoke/base/file_tree.h"
#include "yoke/base/text.h"

namespace yoke::bench {
namespace {

double ticks_of(const std::string& word) {
  double value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

}  // namespace

CoreTimes parse_core_times(std::string_view stat) {
  CoreTimes times;
  for (const std::string& line : split(std::string(stat), '\n')) {
    if (!line.starts_with("cpu")) continue;
    std::vector<std::string> words = split(line, ' ');
    std::erase(words, "");
    if (words.front() != "cpu") {
      ++times.cores;
      continue;
    }
    // user nice system idle iowait irq softirq steal; guest times are part of user.
    for (std::size_t i = 1; i < words.size() && i <= 8; ++i) {
      times.total += ticks_of(words[i]);
      if (i == 4 || i == 5) times.idle += ticks_of(words[i]);
    }
  }
  return times;
}

CoreTimes read_core_times() { return parse_core_times(DiskTree().read("/proc/stat").value_or("")); }

double busy_share(const CoreTimes& before, const CoreTimes& after) {
  const double total = after.total - before.total;
  if (total <= 0) return 0;
  return std::clamp(1 - (after.idle - before.idle) / total, 0.0, 1.0);
}

}  // namespace yoke::bench
