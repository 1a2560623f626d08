// Machines that appear in public tables, so that their figures can be planned and compared, but that no check or link
// command of yoke knows.
#include <array>

#include "yoke/spec/hardware_facts.h"

namespace yoke::spec {
namespace {

using namespace literals;

constexpr std::string_view kOtherRecalled = "recalled, not checked";
constexpr std::string_view kGb300 = "verda.com and Tom's Hardware tables, stored copies";

struct OtherGpu {
  Hardware hardware;
  double bf16;
  double fp8;
  double fp4;
  double nvlink;
  double power;
  std::string_view source;
};

constexpr Hardware node_of(std::string_view name, std::string_view title, std::string_view gpu, int gpus, Bytes memory,
                           BytesPerSecond bandwidth, BitsPerSecond rate) {
  return {.name = name,
          .title = title,
          .gpu = gpu,
          .gpus = gpus,
          .gpu_memory = memory,
          .gpu_memory_bandwidth = bandwidth,
          .rail_rate = rate,
          .management_rate = 10_Gbps};
}

constexpr std::array kOthers = {
    OtherGpu{node_of("gb300", "GB300 tray (4 GPUs of an NVL72)", "NVIDIA GB300", 4, 260_GiB, 8000_GBps, 800_Gbps),
             2.5e15, 5e15, 15e15, 1.8e12, 1400, kGb300},
    OtherGpu{node_of("a100", "8x A100 80GB server", "NVIDIA A100-SXM4-80GB", 8, 79_GiB, 2039_GBps, 200_Gbps), 312e12, 0,
             0, 0.6e12, 400, kOtherRecalled},
    OtherGpu{node_of("h800", "8x H800 server", "NVIDIA H800", 8, 74_GiB, 3350_GBps, 400_Gbps), 0.99e15, 1.98e15, 0,
             0.4e12, 700, kOtherRecalled},
    OtherGpu{node_of("h20", "8x H20 server", "NVIDIA H20", 8, 89_GiB, 4000_GBps, 400_Gbps), 148e12, 296e12, 0, 0.9e12,
             500, kOtherRecalled},
    OtherGpu{node_of("l40s", "8x L40S server", "NVIDIA L40S", 8, 44_GiB, 864_GBps, 200_Gbps), 362e12, 733e12, 0, 0, 350,
             kOtherRecalled},
    OtherGpu{node_of("l20", "8x L20 server", "NVIDIA L20", 8, 44_GiB, 864_GBps, 200_Gbps), 119e12, 239e12, 0, 0, 275,
             kOtherRecalled},
    OtherGpu{
        node_of("rtx-4090", "workstation with an RTX 4090", "NVIDIA GeForce RTX 4090", 1, 23_GiB, 1008_GBps, 10_Gbps),
        165e12, 330e12, 0, 0, 450, kOtherRecalled},
};

HardwareFacts facts_of(const OtherGpu& gpu) {
  const auto gpus = static_cast<double>(gpu.hardware.gpus);
  const auto figure = [&](double value) { return Figure{value, gpu.source}; };
  return {.hardware = &gpu.hardware,
          .memory = figure(static_cast<double>(gpu.hardware.gpu_memory.value)),
          .bandwidth = figure(gpu.hardware.gpu_memory_bandwidth.value),
          .bf16 = figure(gpu.bf16),
          .fp8 = figure(gpu.fp8),
          .fp4 = figure(gpu.fp4),
          .nvlink = figure(gpu.nvlink),
          .gpu_power = figure(gpu.power),
          .idle_power = {300 + 60 * gpus, "assumed: 300 W and 60 W a GPU"},
          .load_power = {800 + 1.15 * gpu.power * gpus, "assumed: 800 W and 1.15 times the GPUs"},
          .nic_limit = {gpus * gpu.hardware.rail_rate.value / 8, "one NIC for each GPU assumed"},
          .rails = gpu.hardware.gpus,
          .ports = gpu.hardware.gpus};
}

}  // namespace

std::span<const HardwareFacts> other_hardware_facts() {
  static const auto kFacts = [] {
    std::array<HardwareFacts, kOthers.size()> all;
    for (std::size_t i = 0; i < kOthers.size(); ++i) all[i] = facts_of(kOthers[i]);
    return all;
  }();
  return kFacts;
}

}  // namespace yoke::spec
