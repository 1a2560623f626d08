#include "yoke/spec/hardware.h"

#include <algorithm>
#include <array>

namespace yoke::spec {
namespace {

using namespace literals;

// Memory is what programs can use, bandwidth the data sheet's. A Spark's cage reports 200 Gb/s on each of its two
// PCIe functions, but each is one Gen5 x4 link and carries about 100: measured 92 to 98 together, up to 111 alone.
constexpr std::array kHardware = {
    Hardware{.name = "spark",
             .title = "NVIDIA DGX Spark, Dell Pro Max with GB10 and kin",
             .gpu = "NVIDIA GB10",
             .gpus = 1,
             .gpu_memory = 119_GiB,
             .unified = true,
             .gpu_memory_bandwidth = 273_GBps,
             .rail_rate = 100_Gbps,
             .rails_per_cable = 2,
             .management_rate = 10_Gbps},
    Hardware{.name = "b300",
             .title = "8x B300 server (Dell XE9780, HGX B300)",
             .gpu = "NVIDIA B300",
             .gpus = 8,
             .nvlinks = 18,
             .gpu_memory = 268_GiB,
             .gpu_memory_bandwidth = 8000_GBps,
             .rail_rate = 800_Gbps,
             .management_rate = 10_Gbps},
    Hardware{.name = "b200",
             .title = "8x B200 server (HGX B200)",
             .gpu = "NVIDIA B200",
             .gpus = 8,
             .nvlinks = 18,
             .gpu_memory = 167_GiB,
             .gpu_memory_bandwidth = 7700_GBps,
             .rail_rate = 400_Gbps,
             .management_rate = 10_Gbps},
    Hardware{.name = "h200",
             .title = "8x H200 server (HGX H200)",
             .gpu = "NVIDIA H200",
             .gpus = 8,
             .nvlinks = 18,
             .gpu_memory = 131_GiB,
             .gpu_memory_bandwidth = 4800_GBps,
             .rail_rate = 400_Gbps,
             .management_rate = 10_Gbps},
    Hardware{.name = "h100",
             .title = "8x H100 server (HGX H100)",
             .gpu = "NVIDIA H100 80GB HBM3",
             .gpus = 8,
             .nvlinks = 18,
             .gpu_memory = 74_GiB,
             .gpu_memory_bandwidth = 3350_GBps,
             .rail_rate = 400_Gbps,
             .management_rate = 10_Gbps},
    Hardware{.name = "rtx-pro-6000",
             .title = "workstation with an RTX PRO 6000 Blackwell",
             .gpu = "NVIDIA RTX PRO 6000",
             .gpus = 1,
             .gpu_memory = 94_GiB,
             .gpu_memory_bandwidth = 1790_GBps,
             .rail_rate = 100_Gbps,
             .management_rate = 1_Gbps},
};

// GPUs on the processor's chip that no row of the catalogue has: Jetson's. A Grace superchip's GPU is none of them, as
// it has a memory of its own beside the processor's.
constexpr std::array kOtherUnifiedGpus = {std::string_view("NVIDIA Thor"), std::string_view("Orin (nvgpu)")};

// "NVIDIA GB10" and what may follow it, but not "NVIDIA GB100".
bool names_gpu(std::string_view name, std::string_view gpu) {
  return name.starts_with(gpu) && (name.size() == gpu.size() || name[gpu.size()] == ' ');
}

}  // namespace

std::span<const Hardware> hardware_catalogue() { return kHardware; }

const Hardware* find_hardware(std::string_view name) {
  for (const Hardware& hardware : kHardware) {
    if (hardware.name == name) return &hardware;
  }
  return nullptr;
}

bool has_unified_memory(std::string_view gpu_name) {
  const auto is_it = [&](std::string_view gpu) { return names_gpu(gpu_name, gpu); };
  return std::any_of(kOtherUnifiedGpus.begin(), kOtherUnifiedGpus.end(), is_it) ||
         std::any_of(kHardware.begin(), kHardware.end(),
                     [&](const Hardware& hardware) { return hardware.unified && is_it(hardware.gpu); });
}

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Hardware& hardware : kHardware) names.emplace_back(hardware.name);
  return names;
}

}  // namespace yoke::spec
