// What jobs on servers depend on beside the devices themselves: kernel modules and settings, the PCI bridges between a
// GPU and its NIC, the fabric manager, errors that the driver reported.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "yoke/probe/collectors.h"
#include "yoke/probe/pci.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

constexpr std::array kModules = {"nvidia",    "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "gdrdrv",
                                 "mlx5_core", "mlx5_ib",    "ib_uverbs",      "rdma_cm"};

constexpr std::array kSettings = {"kernel.numa_balancing", "net.ipv4.conf.all.arp_ignore",
                                  "net.ipv4.conf.all.rp_filter", "vm.nr_hugepages", "vm.zone_reclaim_mode"};

// P2P request redirect and P2P completion redirect (PCI Express, 7.7.8.3).
constexpr int kRedirects = 1 << 2 | 1 << 3;

void add_modules(const FileTree& files, spec::Machine& machine) {
  for (const char* name : kModules) {
    if (files.exists(std::string("/sys/module/") + name)) machine.modules.emplace_back(name);
  }
}

void add_settings_of_kernel(const FileTree& files, spec::Machine& machine) {
  for (const std::string name : kSettings) {
    std::string path = "/proc/sys/" + name;
    std::replace(path.begin() + 10, path.end(), '.', '/');
    if (const auto value = files.read_trimmed(path)) machine.sysctl.push_back({name, *value});
  }
  machine.kernel_command_line = read_nonempty(files, "/proc/cmdline");
}

// The bridges on the way between two devices: those above one of them but not above both.
std::vector<std::string> bridges_between(const PciDevice& a, const PciDevice& b) {
  const std::vector<std::string> above_a = bridges_above(a), above_b = bridges_above(b);
  std::size_t common = 0;
  while (common < std::min(above_a.size(), above_b.size()) && above_a[common] == above_b[common]) ++common;
  std::vector<std::string> between(above_a.begin() + static_cast<std::ptrdiff_t>(common), above_a.end());
  between.insert(between.end(), above_b.begin() + static_cast<std::ptrdiff_t>(common), above_b.end());
  return between;
}

// A bridge that redirects sends what a GPU writes to a NIC below the same switch up to the root and down again.
void add_redirects(const Sources& sources, spec::Machine& machine) {
  std::set<std::string> redirecting, found;
  for (const AcsControl& acs : sources.system.acs) {
    if ((acs.control & kRedirects) != 0) redirecting.insert(acs.bridge);
  }
  if (redirecting.empty()) return;
  const std::map<std::string, PciDevice> devices = read_pci_devices(*sources.files);
  const auto device_at = [&](const std::optional<std::string>& address) -> const PciDevice* {
    const auto device = devices.find(address.value_or(""));
    return device == devices.end() ? nullptr : &device->second;
  };
  for (const spec::Gpu& gpu : machine.gpus) {
    for (const spec::RdmaDevice& nic : machine.rdma_devices) {
      const PciDevice* const a = device_at(gpu.pci_address);
      const PciDevice* const b = device_at(nic.pci_address);
      const std::string path = a && b ? pci_path(*a, *b) : "";
      if (path != "PIX" && path != "PXB") continue;
      for (const std::string& bridge : bridges_between(*a, *b)) {
        if (redirecting.contains(bridge)) found.insert(bridge);
      }
    }
  }
  machine.acs_redirects.assign(found.begin(), found.end());
}

}  // namespace

void collect_server(const Sources& sources, spec::Machine& machine) {
  add_modules(*sources.files, machine);
  add_settings_of_kernel(*sources.files, machine);
  add_redirects(sources, machine);
  machine.allocation = sources.system.allocation;
  machine.fabric_manager = sources.system.fabric_manager;
  machine.xids = sources.system.xids;
}

}  // namespace yoke::probe
