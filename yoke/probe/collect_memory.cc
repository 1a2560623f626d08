#include <algorithm>
#include <map>

#include "yoke/base/text.h"
#include "yoke/probe/available_memory.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/tree_values.h"
#include "yoke/spec/hardware.h"

namespace yoke::probe {
namespace {

constexpr std::string_view kMeminfo = "/proc/meminfo";

// "MemTotal:       127535084 kB", or a plain number ("HugePages_Total:       0").
std::map<std::string, std::int64_t> read_meminfo(const FileTree& files) {
  std::map<std::string, std::int64_t> values;
  for (const std::string& line : split(files.read(kMeminfo).value_or(""), '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string_view rest = trim(std::string_view(line).substr(colon + 1));
    const bool kib = rest.ends_with(" kB");
    if (kib) rest = trim(rest.substr(0, rest.size() - 3));
    const auto number = to_number(rest);
    constexpr std::int64_t kMax = std::int64_t{1} << 50;
    if (!number || *number < 0 || *number > kMax) throw broken_file(kMeminfo, "a line such as MemTotal: 1 kB", line);
    values[line.substr(0, colon)] = kib ? *number * 1024 : *number;
  }
  return values;
}

// By its name: that NVML does not tell a GPU's own memory means nothing, a broken GPU's it does not tell either.
bool is_unified(const spec::Gpu& gpu) { return spec::has_unified_memory(gpu.name); }

}  // namespace

void collect_memory(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  const std::map<std::string, std::int64_t> values = read_meminfo(files);
  const auto value = [&](const char* name) -> std::optional<Bytes> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(Bytes{found->second});
  };
  spec::Memory& memory = machine.memory;
  memory.total = value("MemTotal");
  memory.available = available_memory(files);
  memory.limit = memory_limit(files);
  if (memory.limit && memory.total && *memory.limit >= *memory.total) memory.limit.reset();  // it limits nothing
  memory.unified = std::any_of(machine.gpus.begin(), machine.gpus.end(), is_unified);
  memory.cached = value("Cached");
  const auto pages = value("HugePages_Total");
  const auto page_size = value("Hugepagesize");
  constexpr std::int64_t kMaxPage = std::int64_t{1} << 34;
  if (pages && page_size && page_size->value < kMaxPage && pages->value < kMaxPage >> 6) {
    memory.huge_pages = Bytes{pages->value * page_size->value};
  }
  memory.swap_total = value("SwapTotal");
  memory.swap_free = value("SwapFree");
  memory.cma_total = value("CmaTotal");
  memory.cma_free = value("CmaFree");
}

}  // namespace yoke::probe
