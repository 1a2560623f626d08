// NCCL libraries, the variables that steer it, the limit on locked memory, a firewall that is switched on.
#include <algorithm>

#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

// "Max locked memory         8388608              8388608              bytes": the soft limit, or "unlimited".
void read_memlock(const FileTree& files, spec::Machine& machine) {
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

enum class Form {
  kNccl,         // NAME=value and nothing else: to NCCL, "export NAME" is another name
  kEnvironment,  // pam_env passes over an "export " before the name
  kShell,
};

std::vector<Assignment> assignments_in(std::string_view text, Form form) {
  if (form == Form::kShell) return parse_exports(text);
  std::vector<Assignment> assignments = parse_assignments(text);
  for (Assignment& line : assignments) {
    if (form == Form::kEnvironment) line.name = without_export(line.name);
  }
  return assignments;
}

// The same line in two places, as in /etc/environment and thereby in the environment, is one setting.
void add_settings(const FileTree& files, const std::string& path, Form form, spec::Machine& machine) {
  const auto text = read_if_allowed(files, path);
  if (!text) return;
  for (const Assignment& line : assignments_in(*text, form)) {
    if (!is_network_variable(line.name)) continue;
    const auto same = std::find_if(
        machine.settings.begin(), machine.settings.end(),
        [&](const spec::NetworkSetting& known) { return known.name == line.name && known.value == line.value; });
    if (same == machine.settings.end()) {
      machine.settings.push_back({line.name, line.value, path});
    } else if (!same->where.ends_with(path)) {
      same->where += ", " + path;
    }
  }
}

// Where people put such lines by hand. A session of ssh that runs one command reads few of them, a user's terminal all.
void add_shell_settings(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  for (const std::string& name : files.list("/etc/profile.d")) {
    if (name.ends_with(".sh")) add_settings(files, "/etc/profile.d/" + name, Form::kShell, machine);
  }
  for (const char* name : {"/.profile", "/.bashrc"}) {
    if (sources.system.home) add_settings(files, *sources.system.home + name, Form::kShell, machine);
  }
}

std::optional<std::string> find_firewall(const FileTree& files) {
  const auto ufw = read_if_allowed(files, "/etc/ufw/ufw.conf");
  if (ufw && find_assignment(parse_assignments(*ufw), "ENABLED") == "yes") return "ufw";
  if (files.exists("/run/firewalld")) return "firewalld";
  return std::nullopt;
}

}  // namespace

void collect_settings(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  machine.nccl = sources.system.nccl;
  machine.settings = sources.system.environment;
  add_settings(files, "/etc/environment", Form::kEnvironment, machine);
  add_settings(files, "/etc/nccl.conf", Form::kNccl, machine);
  add_settings(files, "/etc/yoke/fabric.env", Form::kEnvironment, machine);  // by 'yoke link setup', for engines
  if (sources.system.home) add_settings(files, *sources.system.home + "/.nccl.conf", Form::kNccl, machine);
  add_shell_settings(sources, machine);
  read_memlock(files, machine);
  machine.firewall = find_firewall(files);
}

}  // namespace yoke::probe
