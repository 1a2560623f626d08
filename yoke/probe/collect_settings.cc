// NCCL libraries, the variables that steer it, the limit on locked memory, a firewall that is switched on.
#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/tree_values.h"

namespace yoke {
namespace {

// "Max locked memory         8388608              8388608              bytes": the soft limit, or "unlimited".
void read_memlock(const FileTree& files, Machine& machine) {
  constexpr std::string_view kFile = "/proc/self/limits";
  constexpr std::string_view kName = "Max locked memory";
  for (const std::string& line : split(files.read(kFile).value_or(""), '\n')) {
    if (!line.starts_with(kName)) continue;
    const std::string_view rest = trim(std::string_view(line).substr(kName.size()));
    const std::string_view soft = rest.substr(0, rest.find(' '));
    machine.memlock_unlimited = soft == "unlimited";
    if (machine.memlock_unlimited) return;
    const auto bytes = to_number(soft);
    if (!bytes || *bytes < 0) throw broken_file(kFile, "a limit in bytes, or unlimited", line);
    machine.memlock = Bytes{*bytes};
  }
}

void add_settings(const FileTree& files, const std::string& path, Machine& machine) {
  const auto text = read_if_allowed(files, path);
  if (!text) return;
  for (const Assignment& line : parse_assignments(*text)) {
    if (is_network_variable(line.name)) machine.settings.push_back({line.name, line.value, path});
  }
}

std::optional<std::string> find_firewall(const FileTree& files) {
  const auto ufw = read_if_allowed(files, "/etc/ufw/ufw.conf");
  if (ufw && find_assignment(parse_assignments(*ufw), "ENABLED") == "yes") return "ufw";
  if (files.exists("/run/firewalld")) return "firewalld";
  return std::nullopt;
}

}  // namespace

void collect_settings(const Sources& sources, Machine& machine) {
  const FileTree& files = *sources.files;
  machine.nccl = sources.system.nccl;
  machine.settings = sources.system.environment;
  add_settings(files, "/etc/environment", machine);
  add_settings(files, "/etc/nccl.conf", machine);
  add_settings(files, "/etc/yoke/fabric.env", machine);  // by 'yoke link setup', for engines
  if (sources.system.home) add_settings(files, *sources.system.home + "/.nccl.conf", machine);
  read_memlock(files, machine);
  machine.firewall = find_firewall(files);
}

}  // namespace yoke
