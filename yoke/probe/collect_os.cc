#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

// Present on NVIDIA's own image only. Updates over the air append their blocks, so the last one counts; makers write
// the values with quotes or without. The serial number in it is never looked at.
std::optional<spec::DgxRelease> read_dgx_release(const FileTree& files) {
  const auto text = files.read("/etc/dgx-release");
  if (!text) return std::nullopt;
  const std::vector<Assignment> lines = parse_assignments(*text);
  return spec::DgxRelease{.name = find_assignment(lines, "DGX_NAME"),
                          .platform = find_assignment(lines, "DGX_PLATFORM"),
                          .version = find_assignment(lines, "DGX_SWBUILD_VERSION"),
                          .update = find_assignment(lines, "DGX_OTA_VERSION"),
                          .hot_plug = files.exists("/etc/nvidia/cx7-hotplug-enabled")};
}

}  // namespace

void collect_os(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  machine.hostname = files.read_trimmed("/proc/sys/kernel/hostname").value_or("");
  machine.kernel = files.read_trimmed("/proc/sys/kernel/osrelease").value_or("");
  machine.architecture = files.read_trimmed("/proc/sys/kernel/arch").value_or(sources.system.architecture.value_or(""));
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    const auto text = files.read(path);
    if (!text) continue;
    machine.os = find_assignment(parse_assignments(*text), "PRETTY_NAME").value_or("");
    break;
  }
  machine.vendor = read_nonempty(files, "/sys/class/dmi/id/sys_vendor");
  machine.product = read_nonempty(files, "/sys/class/dmi/id/product_name");
  machine.bios = read_nonempty(files, "/sys/class/dmi/id/bios_version");
  machine.dgx = read_dgx_release(files);
  if (const auto forward = read_number(files, "/proc/sys/net/ipv4/ip_forward")) machine.ip_forward = *forward != 0;
}

}  // namespace yoke::probe
