#include "yoke/probe/probe_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "yoke/base/text.h"
#include "yoke/report/table.h"
#include "yoke/spec/address_holder.h"
#include "yoke/spec/fabric.h"

namespace yoke::probe {
namespace {

// "5" for 32 GT/s: the generation, or the speed itself where there is none of that.
std::string generation(double speed) {
  const std::map<double, int> kGenerations = {{2.5, 1}, {5, 2}, {8, 3}, {16, 4}, {32, 5}, {64, 6}, {128, 7}};
  const auto known = kGenerations.find(speed);
  return known == kGenerations.end() ? fmt::format("({} GT/s)", speed) : fmt::format("{}", known->second);
}

// "Gen5 x4", and where it is below its best "Gen5 x2/4": two lanes of four.
std::string pcie_text(const std::optional<spec::PcieLink>& link) {
  if (!link) return "-";
  std::string text = "Gen" + generation(link->speed_gt_per_second);
  if (link->speed_gt_per_second < link->speed_gt_per_second_max)
    text += "/" + generation(link->speed_gt_per_second_max);
  text += fmt::format(" x{}", link->width);
  if (link->width < link->width_max) text += fmt::format("/{}", link->width_max);
  return text;
}

// "0-7", "0, 2": numbers that follow each other are drawn together.
std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

// What is the same for all GPUs of a kind; what changes from moment to moment is in --json.
std::string gpu_text(const spec::Gpu& gpu) {
  std::vector<std::string> parts = {gpu.name};
  if (gpu.compute_capability) parts.push_back("compute " + *gpu.compute_capability);
  if (gpu.memory) parts.push_back(yoke::to_string(*gpu.memory));
  if (gpu.pcie) parts.push_back("PCIe " + pcie_text(gpu.pcie));
  if (gpu.nvlinks) parts.push_back(fmt::format("{} of {} NVLinks", gpu.nvlinks_active.value_or(0), *gpu.nvlinks));
  if (gpu.clock_mhz_max) parts.push_back(fmt::format("up to {} MHz", *gpu.clock_mhz_max));
  if (gpu.power_limit_w) parts.push_back(fmt::format("up to {:.0f} W", *gpu.power_limit_w));
  if (!gpu.clock_limits.empty()) parts.push_back(fmt::format("held down by {}", fmt::join(gpu.clock_limits, ", ")));
  if (!gpu.index) parts.emplace_back("on the bus, but not shown by NVML");
  return fmt::format("{}", fmt::join(parts, ", "));
}

using Rows = std::vector<std::vector<std::string>>;

void add_gpus(const spec::Machine& machine, Rows& rows) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const spec::Gpu& gpu : machine.gpus) {
    const std::string text = gpu_text(gpu);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) { return other.first == text; });
    if (group == groups.end()) group = groups.insert(group, {text, {}});
    if (gpu.index) group->second.push_back(*gpu.index);
  }
  for (const auto& [text, numbers] : groups) {
    rows.push_back({numbers.empty() ? "gpu" : "gpu " + ranges_text(numbers), text});
  }
  if (machine.gpus.empty()) rows.push_back({"gpu", "none"});
  if (machine.gpu_problem) rows.push_back({"", "NVML shows none: " + *machine.gpu_problem});
}

// Whether the GPUs see each other by NVLink, and which do not.
std::optional<std::string> nvlink_text(const spec::Machine& machine) {
  const auto gpus = static_cast<std::size_t>(std::count_if(machine.gpus.begin(), machine.gpus.end(),
                                                           [](const spec::Gpu& gpu) { return gpu.index.has_value(); }));
  if (!machine.topology || gpus < 2) return std::nullopt;
  std::vector<std::string> alone;
  std::map<std::string, int> kinds;
  for (std::size_t i = 0; i < gpus; ++i) {
    bool linked = false;
    for (std::size_t j = 0; j < gpus; ++j) {
      const std::string& path = machine.topology->paths[i][j];
      if (i != j) ++kinds[path];
      linked = linked || path.starts_with("NV");
    }
    if (!linked) alone.push_back(machine.topology->devices[i]);
  }
  if (alone.size() == gpus) return "none between the GPUs";
  if (!alone.empty()) return fmt::format("not to {}", fmt::join(alone, ", "));
  return kinds.size() == 1 ? "all GPUs to all, " + kinds.begin()->first : "between all GPUs";
}

std::string system_text(const spec::Machine& machine) {
  std::string text = machine.product.value_or("");
  const std::string vendor = machine.vendor.value_or("");
  if (!vendor.empty() && !text.starts_with(vendor)) text = vendor + (text.empty() ? "" : " ") + text;
  if (machine.bios) text += ", BIOS " + *machine.bios;
  if (machine.dgx) {
    const std::string version = machine.dgx->update.value_or(machine.dgx->version.value_or(""));
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", machine.dgx->name.value_or("DGX"), version);
  }
  return text.empty() ? "unknown" : text;
}

std::string driver_text(const spec::Machine& machine) {
  if (!machine.driver) return "no NVIDIA driver";
  std::string text = *machine.driver;
  if (machine.cuda) text += fmt::format(", runs CUDA {}", *machine.cuda);
  if (machine.cuda_toolkit) text += fmt::format("; toolkit {}", *machine.cuda_toolkit);
  return text;
}

std::string time_text(const spec::TimeState& time) {
  std::string text = !time.synchronized ? "unknown" : *time.synchronized ? "synchronized" : "not synchronized";
  if (time.error) text += fmt::format(", within {}", yoke::to_string(*time.error));
  if (!time.daemons.empty()) text += fmt::format(" ({})", fmt::join(time.daemons, ", "));
  return text;
}

std::string containers_text(const spec::Machine& machine) {
  const spec::Containers& containers = machine.containers;
  std::string text =
      containers.runtimes.empty() ? "no runtime" : fmt::format("{}", fmt::join(containers.runtimes, ", "));
  if (!containers.runtimes.empty()) text += containers.gpu ? ", with GPUs" : ", not set up for GPUs";
  if (containers.inside) text += fmt::format("; this is inside a {} container", *containers.inside);
  if (!machine.rdma_devices.empty()) {
    text += containers.rdma_access.empty() ? "; no /dev/infiniband" : "; /dev/infiniband is there";
  }
  return text;
}

void add_nccl(const spec::Machine& machine, Rows& rows) {
  if (machine.nccl.empty()) rows.push_back({"nccl", "none found"});
  for (const spec::NcclBuild& build : machine.nccl) {
    std::string text = build.version.value_or("unknown version");
    if (build.build_id) text += ", build " + build.build_id->substr(0, 8);
    if (!build.architectures.empty()) text += fmt::format(", {}", fmt::join(build.architectures, " "));
    rows.push_back({"nccl", fmt::format("{}: {}", text, build.path)});
  }
  for (const spec::NetworkSetting& setting : machine.settings) {
    rows.push_back({"set", fmt::format("{}={} ({})", setting.name, printable(setting.value, 80), setting.where)});
  }
}

std::string addresses_text(const spec::NetworkInterface& interface) {
  std::vector<std::string> texts;
  for (const Ipv4Prefix& address : interface.addresses) texts.push_back(yoke::to_string(address));
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string state_text(const spec::NetworkInterface& interface) {
  if (!interface.up) return "off";
  if (!interface.carrier) return "no link";
  return interface.speed ? yoke::to_string(*interface.speed) : "up";
}

// The rate that a port agreed on; where the interface does not tell (in a lab), what its RDMA device says.
std::string rate_text(const spec::NetworkInterface& interface, const spec::RdmaDevice* device) {
  if (!interface.up || !interface.carrier) return interface.up ? "down" : "off";
  const auto rate = interface.speed || !device ? interface.speed : device->rate;
  return rate ? fmt::format("{:g}", rate->value / 1e9) : "up";
}

std::string fast_table(const spec::Machine& machine) {
  const std::vector<const spec::NetworkInterface*> fast = spec::fast_interfaces(machine);
  if (fast.empty()) return "";
  report::Table table{.columns = {{.header = spec::has_halves(machine) ? "port" : "rail"},
                                  {.header = "interface"},
                                  {.header = "device"},
                                  {.header = "Gb/s", .align = report::TextAlign::kRight},
                                  {.header = "MTU", .align = report::TextAlign::kRight},
                                  {.header = "address", .fit = report::ColumnFit::kShrinks},
                                  {.header = "GID", .align = report::TextAlign::kRight},
                                  {.header = "PCIe"}}};
  for (const spec::NetworkInterface* interface : fast) {
    const spec::RdmaDevice* const device = spec::find_rdma_device(machine, *interface->rdma_device);
    const std::string gid = device && device->gid_index ? fmt::format("{}", *device->gid_index) : "-";
    const spec::NetworkInterface& holder =
        device ? spec::address_holder(machine, *interface, device->gids) : *interface;
    const std::string rail = spec::has_halves(machine) ? fmt::format("{}{}", *interface->port, *interface->rail)
                                                       : spec::rail_letter(machine, *interface);
    table.rows.push_back({rail, interface->name, *interface->rdma_device, rate_text(*interface, device),
                          fmt::format("{}", interface->mtu), addresses_text(holder), gid, pcie_text(interface->pcie)});
  }
  return "\n" + report::render_text(table);
}

std::string other_interfaces(const spec::Machine& machine) {
  std::vector<std::string> texts;
  for (const spec::NetworkInterface& interface : machine.interfaces) {
    if (interface.port || interface.kind == spec::InterfaceKind::kLoopback) continue;
    std::string text = fmt::format("{} {}", interface.name, state_text(interface));
    if (interface.kind == spec::InterfaceKind::kWifi) text += " Wi-Fi";
    if (!interface.addresses.empty()) text += " " + addresses_text(interface);
    const bool is_default = std::any_of(machine.routes.begin(), machine.routes.end(), [&](const spec::Route& route) {
      return !route.destination && route.interface == interface.name;
    });
    if (is_default) text += " (default route)";
    texts.push_back(std::move(text));
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string memory_text(const spec::Memory& memory) {
  std::string text = memory.total ? yoke::to_string(*memory.total) : "unknown";
  if (memory.unified) text += " shared with the GPU";
  if (memory.available) text += fmt::format(", {} available", yoke::to_string(*memory.available));
  if (memory.limit) text += fmt::format(", limited to {}", yoke::to_string(*memory.limit));
  return text;
}

std::string gpus_text(const spec::Machine& machine) {
  std::map<std::string, int> counts;
  for (const spec::Gpu& gpu : machine.gpus) ++counts[gpu.name];
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) texts.push_back(count == 1 ? name : fmt::format("{}x {}", count, name));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string links_text(const spec::Machine& machine) {
  const std::vector<const spec::NetworkInterface*> fast = spec::fast_interfaces(machine);
  const auto up = std::count_if(fast.begin(), fast.end(), [](const auto* interface) { return interface->carrier; });
  return fast.empty() ? "none" : fmt::format("{} of {} up", up, fast.size());
}

std::string machine_text(const spec::Machine& machine) {
  report::Table table{.columns = {{}, {.fit = report::ColumnFit::kShrinks}}};
  Rows& rows = table.rows;
  rows.push_back({"machine", system_text(machine)});
  rows.push_back({"os", fmt::format("{}, kernel {}, {}", machine.os, machine.kernel, machine.architecture)});
  const auto cores = machine.cpu.cores ? fmt::format(", {} cores", *machine.cpu.cores) : "";
  const auto nodes =
      machine.cpu.numa_nodes.value_or(1) > 1 ? fmt::format(", {} NUMA nodes", *machine.cpu.numa_nodes) : "";
  rows.push_back({"cpu", machine.cpu.model + cores + nodes});
  const auto swap = machine.memory.swap_total.value_or(Bytes{0});
  rows.push_back({"memory", memory_text(machine.memory) + (swap.value > 0 ? "; swap " + yoke::to_string(swap) : "")});
  rows.push_back({"driver", driver_text(machine)});
  add_gpus(machine, rows);
  if (const auto text = nvlink_text(machine)) rows.push_back({"nvlink", *text});
  add_nccl(machine, rows);
  rows.push_back({"containers", containers_text(machine)});
  if (machine.memlock_unlimited || machine.memlock) {
    rows.push_back({"memlock", machine.memlock_unlimited ? "unlimited" : yoke::to_string(*machine.memlock)});
  }
  rows.push_back({"time", time_text(machine.time)});
  rows.push_back({"network", other_interfaces(machine)});
  if (machine.firewall) rows.push_back({"firewall", *machine.firewall + " is switched on"});
  return machine.hostname + "\n" + report::render_text(table) + fast_table(machine);
}

}  // namespace yoke::probe
