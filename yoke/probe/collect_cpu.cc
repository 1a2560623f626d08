#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/cpu_list.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

// An Arm core tells numbers, not a name. Those of the machines that yoke is made for, and of common servers; from Arm's
// technical reference manuals (MIDR_EL1).
struct ArmPart {
  std::string_view part, name;
};
constexpr std::array kArmParts = {
    ArmPart{"0xd0c", "Neoverse-N1"}, ArmPart{"0xd40", "Neoverse-V1"}, ArmPart{"0xd49", "Neoverse-N2"},
    ArmPart{"0xd4f", "Neoverse-V2"}, ArmPart{"0xd84", "Neoverse-V3"}, ArmPart{"0xd85", "Cortex-X925"},
    ArmPart{"0xd87", "Cortex-A725"}, ArmPart{"0xd8e", "Neoverse-N3"},
};

std::string arm_name(const std::string& implementer, const std::string& part) {
  for (const ArmPart& known : kArmParts) {
    if (implementer == "0x41" && known.part == part) return std::string(known.name);
  }
  return fmt::format("Arm core {}/{}", implementer, part);
}

struct Processors {
  int count = 0;
  std::map<std::string, int> models;  // how many of each
  std::set<std::string> sockets;
};

Processors read_processors(const std::string& text) {
  Processors found;
  std::map<std::string, std::string> fields;  // of the processor at hand
  const auto finish = [&] {
    if (!fields.contains("processor")) return fields.clear();
    ++found.count;
    if (fields.contains("CPU part")) {
      ++found.models[arm_name(fields["CPU implementer"], fields["CPU part"])];
    } else if (fields.contains("model name")) {
      ++found.models[fields["model name"]];
    }
    if (fields.contains("physical id")) found.sockets.insert(fields["physical id"]);
    fields.clear();
  };
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) finish();
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view whole = line;
    fields[std::string(trim(whole.substr(0, colon)))] = trim(whole.substr(colon + 1));
  }
  finish();
  return found;
}

// "10x Cortex-X925 + 10x Cortex-A725": the newest first, which in Arm's numbering by name is the larger.
std::string describe(const Processors& processors) {
  if (processors.models.size() == 1) return processors.models.begin()->first;
  std::vector<std::pair<std::string, int>> models(processors.models.rbegin(), processors.models.rend());
  std::string text;
  for (const auto& [name, count] : models) text += fmt::format("{}{}x {}", text.empty() ? "" : " + ", count, name);
  return text;
}

std::optional<int> read_list_count(const FileTree& files, const std::string& path) {
  const auto text = files.read_trimmed(path);
  if (!text) return std::nullopt;
  const auto count = count_of_list(*text);
  if (!count) throw broken_file(path, "a list of numbers such as 0-19", *text);
  return count;
}

}  // namespace

void collect_cpu(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  const Processors processors = read_processors(files.read("/proc/cpuinfo").value_or(""));
  machine.cpu.model = describe(processors);
  machine.cpu.cores = read_list_count(files, "/sys/devices/system/cpu/online");
  if (!machine.cpu.cores && processors.count > 0) machine.cpu.cores = processors.count;
  if (!processors.sockets.empty()) machine.cpu.sockets = static_cast<int>(processors.sockets.size());
  machine.cpu.numa_nodes = read_list_count(files, "/sys/devices/system/node/online");
}

}  // namespace yoke::probe
