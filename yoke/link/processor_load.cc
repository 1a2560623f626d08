#include "yoke/link/processor_load.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::link {
namespace {

std::string text_of(const std::string& file) {
  return try_to([&] { return read_file(file); }).value_or("");
}

double number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return static_cast<double>(number);
}

// How long our cgroup was held back: "throttled_usec 1234" of its cpu.stat. Version 2 of cgroups only.
Seconds throttled_time() {
  for (const std::string& line : split(text_of("/proc/self/cgroup"), '\n')) {
    if (!line.starts_with("0::")) continue;
    for (const std::string& stat : split(text_of("/sys/fs/cgroup" + line.substr(3) + "/cpu.stat"), '\n')) {
      constexpr std::string_view kName = "throttled_usec ";
      if (stat.starts_with(kName)) return {number_of(std::string_view(stat).substr(kName.size())) / 1e6};
    }
  }
  return {0};
}

}  // namespace

void parse_processor_times(std::string_view stat, ProcessorTimes& times) {
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  int cores = 0;
  for (const std::string& line : split(stat, '\n')) {
    if (line.starts_with("cpu") && line.size() > 3 && line[3] != ' ') ++cores;
    if (!line.starts_with("cpu ")) continue;
    std::vector<double> fields;  // user nice system idle iowait irq softirq steal …
    for (const std::string& word : split(line.substr(4), ' ')) {
      if (!word.empty()) fields.push_back(number_of(word));
    }
    fields.resize(std::max<std::size_t>(fields.size(), 8));
    times.busy = Seconds{(fields[0] + fields[1] + fields[2]) / ticks};
    times.stolen = Seconds{fields[7] / ticks};
  }
  if (cores > 0) times.cores = cores;
}

ProcessorTimes read_processor_times() {
  ProcessorTimes times{.at = real_clock().now()};
  parse_processor_times(text_of("/proc/stat"), times);
  times.throttled = throttled_time();
  times.machine = std::string(trim(text_of("/proc/sys/kernel/random/boot_id")));
  return times;
}

ProcessorLoad load_between(const ProcessorTimes& before, const ProcessorTimes& after) {
  const double window = to_seconds(after.at - before.at).value;
  if (window <= 0) return {.cores = after.cores, .machine = after.machine};
  const auto share = [&](Seconds was, Seconds is) { return std::max(0.0, (is - was).value / window); };
  return {.busy = share(before.busy, after.busy),
          .stolen = share(before.stolen, after.stolen),
          .throttled = std::min(1.0, share(before.throttled, after.throttled)),
          .cores = after.cores,
          .machine = after.machine};
}

double taken_share(const ProcessorLoad& load, double own) {
  const double others = std::max(0.0, load.busy - own) + load.stolen;
  return std::clamp(std::max(others / load.cores, load.throttled), 0.0, 1.0);
}

}  // namespace yoke::link
