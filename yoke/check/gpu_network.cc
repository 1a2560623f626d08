// The way from a GPU to its NIC: what makes it longer or slower.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "yoke/check/pin_list.h"
#include "yoke/check/rules.h"
#include "yoke/check/servers.h"

namespace yoke::check {
namespace {

constexpr double kMaxHugePages = 0.5;  // of all memory

// "6.8.0-71-generic"
bool is_kernel_since(const std::string& kernel, int major, int minor) {
  int has_major = 0, has_minor = 0;
  const char* const end = kernel.data() + kernel.size();
  const auto [rest, failure] = std::from_chars(kernel.data(), end, has_major);
  if (failure != std::errc{} || rest == end) return false;
  std::from_chars(rest + 1, end, has_minor);
  return std::pair(has_major, has_minor) >= std::pair(major, minor);
}

bool has_module(const spec::Machine& machine, std::string_view name) {
  return std::ranges::find(machine.modules, name) != machine.modules.end();
}

// A server whose GPUs and RDMA devices are to work together; null: not this machine.
const spec::Machine* gpu_direct_machine(const spec::SurveyedNode& node) {
  const bool is_one = node.machine && server_of(*node.machine) && has_active_rdma(*node.machine);
  return is_one ? &*node.machine : nullptr;
}

}  // namespace

AdviceList find_acs_redirects(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const spec::Machine* machine = gpu_direct_machine(node);
    if (!machine || view.lab || machine->acs_redirects.empty()) continue;
    list.push_back(
        {.node = node.name,
         .subject = "ACS",
         .what = fmt::format("PCI bridges of {} send what GPUs and NICs exchange through the processor", node.name),
         .evidence = fmt::format("ACS redirects on {}", fmt::join(machine->acs_redirects, ", ")),
         .consequence = "GPUDirect RDMA and P2P run at a fraction of the rate, or hang",
         .fix = "switch ACS off in the BIOS (with VT-d or the IOMMU), or on each start: 'setpci -s BRIDGE "
                "ECAP_ACS+0x6.w=0000' for these bridges"});
  }
  return list;
}

AdviceList find_translating_iommus(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const spec::Machine* machine = gpu_direct_machine(node);
    if (!machine || view.lab || machine->architecture != "x86_64") continue;  // Grace needs its own
    std::set<std::string> translated;
    for (const spec::Gpu& gpu : machine->gpus) {
      if (gpu.iommu && gpu.iommu->starts_with("DMA")) translated.insert(fmt::format("GPU at {}", *gpu.pci_address));
    }
    for (const spec::RdmaDevice& device : machine->rdma_devices) {
      if (device.iommu && device.iommu->starts_with("DMA")) translated.insert(device.name);
    }
    if (translated.empty()) continue;
    list.push_back({.node = node.name,
                    .subject = "IOMMU",
                    .what = fmt::format("the IOMMU of {} translates what GPUs and NICs exchange", node.name),
                    .evidence = fmt::format("{} (kernel: {})", fmt::join(translated, ", "),
                                            machine->kernel_command_line.value_or("command line not known")),
                    .consequence = "GPUDirect RDMA goes through the processor: often half of the rate",
                    .fix = "add iommu=pt to the kernel's command line (GRUB_CMDLINE_LINUX, update-grub, reboot), or "
                           "switch the IOMMU off in the BIOS where no virtual machines run"});
  }
  return list;
}

AdviceList find_missing_gpu_direct(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const spec::Machine* machine = gpu_direct_machine(node);
    if (!machine || view.lab || machine->modules.empty() || !machine->driver) continue;
    if (has_module(*machine, "nvidia_peermem") || has_module(*machine, "nv_peer_mem")) continue;
    // DMA-BUF needs no module of its own: NVIDIA's open kernel module and Linux 5.12 (NCCL's user guide).
    const bool dma_buf = machine->open_driver.value_or(true) && is_kernel_since(machine->kernel, 5, 12);
    if (dma_buf) continue;
    list.push_back(
        {.node = node.name,
         .subject = "GPUDirect RDMA",
         .what = fmt::format("NICs of {} cannot reach GPU memory themselves", node.name),
         .evidence = fmt::format("nvidia-peermem is not loaded, and DMA-BUF needs {}",
                                 machine->open_driver.value_or(true)
                                     ? fmt::format("Linux 5.12 or later, not {}", machine->kernel)
                                     : "NVIDIA's open kernel module, not the closed one"),
         .consequence = "NCCL copies through host memory: about half of the rate between nodes",
         .fix = "'modprobe nvidia-peermem' now, and a line 'nvidia-peermem' in /etc/modules-load.d/ for each start"});
  }
  return list;
}

AdviceList find_pins_of_some_rails(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    if (pin.kind->variable != "NCCL_IB_HCA" || pin.entries.empty() || !server_of(*pin.node->machine)) continue;
    const std::set<std::string> chosen = pin.chosen();
    std::vector<std::string> used, left_out, all;
    for (const RailEnd* end : view.rails_of(*pin.node)) {
      if (!end->is_up() || !end->rdma) continue;
      (chosen.contains(end->rdma->name) ? used : left_out).push_back(end->rdma->name);
      all.push_back(end->rdma->name);
    }
    if (used.empty() || left_out.empty()) continue;
    list.push_back(
        {.node = pin.node->name,
         .subject = pin.setting->name,
         .what = fmt::format("{} leaves {} of {} rails of {} unused", pin.setting->name, left_out.size(), all.size(),
                             pin.node->name),
         .evidence = fmt::format("{}; {} {} a link too", pin.place(), fmt::join(left_out, ", "),
                                 left_out.size() == 1 ? "has" : "have"),
         .consequence = fmt::format("between nodes NCCL runs at {:.0f}% of the rate",
                                    100.0 * static_cast<double>(used.size()) / static_cast<double>(all.size())),
         .fix = pin.write(all)});
  }
  return list;
}

AdviceList find_held_huge_pages(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab || !node.machine->memory.huge_pages || !node.machine->memory.total) continue;
    const spec::Memory& memory = node.machine->memory;
    const double share = *memory.huge_pages / *memory.total;
    if (share <= kMaxHugePages) continue;
    list.push_back(
        {.node = node.name,
         .subject = "memory",
         .what = fmt::format("{:.0f}% of the memory of {} are reserved as huge pages", 100 * share, node.name),
         .evidence = fmt::format("{} of {}", yoke::to_string(*memory.huge_pages), yoke::to_string(*memory.total)),
         .consequence = "programs that do not ask for huge pages, as PyTorch and NCCL, cannot have it",
         .fix = "'sysctl vm.nr_hugepages=0', and the same in /etc/sysctl.d/ or the kernel's command line, "
                "unless a program here needs them"});
  }
  return list;
}

}  // namespace yoke::check
