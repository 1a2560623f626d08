#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/pci.h"
#include "yoke/probe/tree_values.h"
#include "yoke/spec/hardware.h"

namespace yoke::probe {
namespace {

// Names for what is on the bus but not shown by NVML, as in a lab or without a driver.
struct KnownGpu {
  std::string_view device, name;
};
constexpr std::array kKnownGpus = {KnownGpu{"0x2e12", "NVIDIA GB10"}, KnownGpu{"0x3182", "NVIDIA B300 SXM6 AC"},
                                   KnownGpu{"0x2901", "NVIDIA B200"}, KnownGpu{"0x2335", "NVIDIA H200"},
                                   KnownGpu{"0x2330", "NVIDIA H100 80GB HBM3"}};

bool is_gpu(const PciDevice& device) {
  return device.vendor == "0x10de" && (device.device_class.starts_with("0x0300") ||  // VGA controller
                                       device.device_class.starts_with("0x0302"));   // 3D controller
}

// NVML's "0000000F:01:00.0" as /sys has it: "000f:01:00.0".
std::string normal_address(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t colon = address.find(':');
  if (colon == 8 && address.starts_with("0000")) address.erase(0, 4);
  return address;
}

std::string name_on_bus(const FileTree& files, const PciDevice& device) {
  const auto text = files.read(fmt::format("/proc/driver/nvidia/gpus/{}/information", device.address));
  for (const std::string& line : split(text.value_or(""), '\n')) {
    if (line.starts_with("Model:")) return std::string(trim(std::string_view(line).substr(6)));
  }
  for (const KnownGpu& known : kKnownGpus) {
    if (known.device == device.device) return std::string(known.name);
  }
  return fmt::format("NVIDIA GPU {}", device.device);
}

void add_bus_facts(const FileTree& files, const PciDevice& device, spec::Gpu& gpu) {
  gpu.pci_address = device.address;
  if (!gpu.numa_node) gpu.numa_node = device.numa_node;
  // What a GPU on the processor's chip says of its link means nothing: a GB10 shows Gen1 x1.
  if (!spec::has_unified_memory(gpu.name)) gpu.pcie = read_pcie_link(files, device);
  gpu.iommu = read_iommu_type(files, device.address);
}

spec::Gpu from_nvml(const NvmlGpu& reported) {
  spec::Gpu gpu{.index = reported.index,
                .name = reported.name.value_or("NVIDIA GPU"),
                .uuid = reported.uuid,
                .compute_capability = reported.compute_capability,
                .memory = reported.memory_total,
                .memory_free = reported.memory_free,
                .numa_node = reported.numa_affinity,
                .cpu_affinity = reported.cpu_affinity,
                .vbios = reported.vbios_version,
                .persistence = reported.persistence_mode,
                .clock_mhz = reported.clock_graphics_mhz,
                .clock_mhz_max = reported.clock_graphics_max_mhz,
                .power_w = reported.power_w,
                .power_limit_w = reported.power_limit_w,
                .power_limit_default_w = reported.power_limit_default_w,
                .temperature_c = reported.temperature_c,
                .utilization_percent = reported.utilization_percent,
                .clock_limits = reported.clock_limits,
                .nvlinks = reported.nvlink_links,
                .nvlinks_active = reported.nvlink_links_active,
                .nvlink_errors = reported.nvlink_errors,
                .nvlink_errors_rising = reported.nvlink_errors_rising,
                .nvlink_recoveries = reported.nvlink_recoveries,
                .fabric_state = reported.fabric_state,
                .ecc_uncorrected = reported.ecc_uncorrected,
                .ecc_uncorrected_total = reported.ecc_uncorrected_total,
                .row_remap_pending = reported.row_remap_pending,
                .row_remap_failed = reported.row_remap_failed};
  // Some drivers tell here what the system has: it would be counted twice, and is not what programs get.
  if (spec::has_unified_memory(gpu.name)) gpu.memory = gpu.memory_free = std::nullopt;
  if (reported.pci_bus_id) gpu.pci_address = normal_address(*reported.pci_bus_id);
  for (const NvmlProcess& process : reported.processes) gpu.processes.push_back({process.pid, process.memory});
  return gpu;
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.126.09  Release Build"
std::optional<std::string> driver_of(const FileTree& files) {
  const auto text = files.read("/proc/driver/nvidia/version");
  if (!text) return std::nullopt;
  static const std::regex kVersion(R"(\s(\d+\.\d+(\.\d+)?)\s)");
  const std::string first_line = text->substr(0, std::min<std::size_t>(text->find('\n'), 500)) + " ";
  std::smatch match;
  if (!std::regex_search(first_line, match, kVersion)) {
    throw broken_file("/proc/driver/nvidia/version", "a line with the driver's version", *text);
  }
  return match[1];
}

std::optional<bool> is_open_driver(const FileTree& files) {
  const auto text = files.read("/proc/driver/nvidia/version");
  if (!text) return std::nullopt;
  return text->substr(0, text->find('\n')).find("Open Kernel Module") != std::string::npos;
}

// {"cuda": {"version": "13.0.1", …}, …}. Looked for as text: the file has a hundred more keys that come and go.
std::optional<std::string> toolkit_of(const FileTree& files) {
  const auto text = files.read("/usr/local/cuda/version.json");
  const std::size_t cuda = text ? text->find("\"cuda\"") : std::string::npos;
  if (cuda == std::string::npos) return std::nullopt;
  static const std::regex kVersion(R"re("version"\s*:\s*"([0-9.]+)")re");
  const std::string part = text->substr(cuda, 500);
  std::smatch match;
  return std::regex_search(part, match, kVersion) ? std::optional<std::string>(match[1]) : std::nullopt;
}

}  // namespace

void collect_gpus(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  machine.driver = sources.nvml.driver_version ? sources.nvml.driver_version : driver_of(files);
  machine.cuda = sources.nvml.cuda_version;
  machine.cuda_toolkit = toolkit_of(files);
  machine.gpu_problem = sources.nvml.failure;
  machine.open_driver = is_open_driver(files);
  std::map<std::string, PciDevice> on_bus = read_pci_devices(files);
  std::erase_if(on_bus, [](const auto& entry) { return !is_gpu(entry.second); });
  for (const NvmlGpu& reported : sources.nvml.gpus) {
    spec::Gpu gpu = from_nvml(reported);
    const auto device = on_bus.find(gpu.pci_address.value_or(""));
    if (device != on_bus.end()) {
      add_bus_facts(files, device->second, gpu);
      on_bus.erase(device);
    }
    machine.gpus.push_back(std::move(gpu));
  }
  for (const auto& [address, device] : on_bus) {
    spec::Gpu gpu{.name = name_on_bus(files, device)};
    add_bus_facts(files, device, gpu);
    machine.gpus.push_back(std::move(gpu));
  }
}

}  // namespace yoke::probe
