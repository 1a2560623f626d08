#include "yoke/bench/machine_facts.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "yoke/base/text.h"

namespace yoke::bench {
namespace {

// x86 has "model name"; Arm has only numbers there, and a device tree or DMI that names the machine.
std::string processor_name(const FileTree& tree) {
  const std::string text = tree.read("/proc/cpuinfo").value_or("");
  std::string part;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    const std::string_view value = trim(std::string_view(line).substr(colon + 1));
    if (key == "model name") return printable(value);
    if (key == "CPU part" && part.empty()) part = fmt::format("Arm part {}", printable(value, 20));
  }
  for (const std::string_view file : {"/sys/firmware/devicetree/base/model", "/sys/class/dmi/id/product_name"}) {
    if (auto name = tree.read_trimmed(file); name && !name->empty()) {
      while (name->ends_with('\0')) name->pop_back();
      return part.empty() ? printable(*name) : fmt::format("{} ({})", printable(*name), part);
    }
  }
  return part.empty() ? "unknown processor" : part;
}

Bytes last_cache(const FileTree& tree) {
  Bytes largest{};
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache";
  for (const std::string& index : tree.list(folder)) {
    const auto text = tree.read_trimmed(folder + "/" + index + "/size");  // "32768K"
    if (!text) continue;
    const auto size = parse_bytes(text->ends_with('K') ? text->substr(0, text->size() - 1) + "KiB" : *text + "iB");
    if (size) largest = std::max(largest, *size);
  }
  return largest;
}

}  // namespace

MachineFacts facts_of_this_machine(const FileTree& tree) {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name = {"unknown"};
  return {.host = name.data(), .processor = processor_name(tree), .last_cache = last_cache(tree)};
}

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

}  // namespace yoke::bench
