// GPUs that are not what they should be.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/check/rules.h"

namespace yoke {
namespace {

// A GB10 whose power supply negotiation wedged: busy, yet under 1400 of 3003 MHz and 40 W.
constexpr int kBusyPercent = 90;
constexpr double kClockShareLeast = 0.47;
constexpr double kGb10PowerLeast = 40;
constexpr double kPowerShareLeast = 0.3;  // of the limit, where the GPU tells one

bool draws_little(const Gpu& gpu) {
  if (!gpu.power_w) return false;
  return gpu.power_limit_w ? *gpu.power_w < kPowerShareLeast * *gpu.power_limit_w : *gpu.power_w < kGb10PowerLeast;
}

bool is_nvlink(const std::string& path) { return path.size() > 2 && path.starts_with("NV"); }

struct LinkedGpus {
  std::vector<std::string> names;
  std::vector<std::size_t> links;  // to how many other GPUs each has NVLink
};

LinkedGpus linked_gpus(const DeviceTopology& topology) {
  LinkedGpus gpus;
  for (std::size_t i = 0; i < topology.devices.size() && i < topology.paths.size(); ++i) {
    if (!topology.devices[i].starts_with("GPU")) continue;
    std::size_t count = 0;
    for (std::size_t j = 0; j < topology.paths[i].size() && j < topology.devices.size(); ++j) {
      if (topology.devices[j].starts_with("GPU") && is_nvlink(topology.paths[i][j])) ++count;
    }
    gpus.names.push_back(topology.devices[i]);
    gpus.links.push_back(count);
  }
  return gpus;
}

}  // namespace

AdviceList find_dead_gpus(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab) continue;  // a lab shows GPUs on the bus that nobody has
    const Machine& machine = *node.machine;
    const auto lost =
        std::count_if(machine.gpus.begin(), machine.gpus.end(), [](const Gpu& gpu) { return !gpu.index; });
    if (lost == 0 || !machine.driver) continue;  // without a driver nothing is expected
    list.push_back({.node = node.name,
                    .subject = "GPU",
                    .what = fmt::format("{} of {} GPUs of {} cannot be used", lost, machine.gpus.size(), node.name),
                    .evidence = machine.gpu_problem.value_or("on the PCI bus, but NVML does not show it"),
                    .consequence = "jobs that count on it do not start",
                    .fix = "look for Xid lines in dmesg; reboot, and after GSP timeouts unplug the power for 30 s"});
  }
  return list;
}

AdviceList find_stuck_gpus(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const Gpu& gpu : node.machine->gpus) {
      if (gpu.utilization_percent.value_or(0) < kBusyPercent || !gpu.clock_mhz || !gpu.clock_mhz_max) continue;
      if (*gpu.clock_mhz >= kClockShareLeast * *gpu.clock_mhz_max || !draws_little(gpu)) continue;
      list.push_back({.node = node.name,
                      .subject = fmt::format("GPU {}", gpu.index.value_or(0)),
                      .what = fmt::format("a GPU of {} is busy, but stuck at a low clock", node.name),
                      .evidence = fmt::format("{}% busy at {} of {} MHz and {:.0f} W", *gpu.utilization_percent,
                                              *gpu.clock_mhz, *gpu.clock_mhz_max, *gpu.power_w),
                      .consequence = "everything takes two to three times as long, on all nodes that wait for it",
                      .fix =
                          "shut down, unplug the power supply at the wall for a minute, use the supply that came with "
                          "the machine"});
    }
  }
  return list;
}

AdviceList find_gpus_off_nvlink(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !node.machine->topology) continue;
    const LinkedGpus gpus = linked_gpus(*node.machine->topology);
    const auto linked = std::count_if(gpus.links.begin(), gpus.links.end(), [](std::size_t n) { return n > 0; });
    if (linked == 0) continue;  // a machine without NVLink
    for (std::size_t i = 0; i < gpus.names.size(); ++i) {
      if (gpus.links[i] > 0) continue;
      list.push_back({.node = node.name,
                      .subject = gpus.names[i],
                      .what = fmt::format("{} of {} has no NVLink to the others", gpus.names[i], node.name),
                      .evidence = fmt::format("{} of {} GPUs are joined by NVLink", linked, gpus.names.size()),
                      .consequence = "tensor parallel over all GPUs runs at PCIe speed, or NCCL fails to start",
                      .fix =
                          "reset it ('nvidia-smi --gpu-reset') with all jobs ended, restart the fabric manager; if it "
                          "stays, the board needs service"});
    }
  }
  return list;
}

}  // namespace yoke
