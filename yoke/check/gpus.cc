// GPUs that are not what they should be.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/check/rules.h"
#include "yoke/check/servers.h"

namespace yoke::check {
namespace {

constexpr int kBusyPercent = 90;
// A GB10 whose power supply negotiation wedged is busy below these, in P0 and without a limit that NVML names. Its NVML
// tells neither a highest clock nor a power limit on every release.
constexpr int kMinGb10Clock = 1400;
constexpr double kMinGb10Power = 40;
// Of the highest clock and of the limit, where another GPU tells them.
constexpr double kMinClockShare = 0.47;
constexpr double kMinPowerShare = 0.3;

bool is_stuck(const spec::Gpu& gpu) {
  if (gpu.utilization_percent.value_or(0) < kBusyPercent || !gpu.clock_mhz || !gpu.power_w) return false;
  if (gpu.name.starts_with("NVIDIA GB10") && !gpu.name.starts_with("NVIDIA GB100")) {
    return *gpu.clock_mhz < kMinGb10Clock && *gpu.power_w < kMinGb10Power;
  }
  return gpu.clock_mhz_max && gpu.power_limit_w && *gpu.clock_mhz < kMinClockShare * *gpu.clock_mhz_max &&
         *gpu.power_w < kMinPowerShare * *gpu.power_limit_w;
}

// On the bus, but not shown by NVML. In a container, or a job's control group, all of the machine are on the bus, and
// those that were not given to it are not lost: a container has files in /dev for its own.
std::size_t lost_gpus(const spec::Machine& machine) {
  const auto on_bus = [](const spec::Gpu& gpu) { return !gpu.index; };
  const auto lost = static_cast<std::size_t>(std::count_if(machine.gpus.begin(), machine.gpus.end(), on_bus));
  const std::size_t shown = machine.gpus.size() - lost;
  if (!is_given_a_part(machine) || machine.gpu_problem) return lost;  // the driver itself says that it lost one
  if (!machine.containers.inside) return 0;
  const std::size_t given = machine.containers.gpu_access.size();
  return std::min(lost, given > shown ? given - shown : 0);
}

std::string xid_of_lost(const spec::Machine& machine) {
  for (const spec::Gpu& gpu : machine.gpus) {
    if (gpu.index || !gpu.pci_address) continue;
    for (const spec::XidLine& xid : machine.xids) {
      if (gpu.pci_address->starts_with(xid.pci_address)) return "; " + xid.line;
    }
  }
  return "";
}

bool is_nvlink(const std::string& path) { return path.size() > 2 && path.starts_with("NV"); }

struct LinkedGpus {
  std::vector<std::string> names;
  std::vector<std::size_t> links;  // to how many other GPUs each has NVLink
};

LinkedGpus linked_gpus(const spec::DeviceTopology& topology) {
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
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab) continue;  // a lab shows GPUs on the bus that nobody has
    const spec::Machine& machine = *node.machine;
    const std::size_t lost = lost_gpus(machine);
    if (lost == 0 || !machine.driver) continue;  // without a driver nothing is expected
    list.push_back(
        {.node = node.name,
         .subject = "GPU",
         .what = fmt::format("{} of {} GPUs of {} cannot be used", lost, machine.gpus.size(), node.name),
         .evidence = machine.gpu_problem.value_or("on the PCI bus, but NVML does not show it") + xid_of_lost(machine),
         .consequence = "jobs that count on it do not start",
         .fix = "look for Xid lines in dmesg; reboot, and after GSP timeouts unplug the power for 30 s"});
  }
  return list;
}

AdviceList find_stuck_gpus(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      if (!is_stuck(gpu)) continue;
      list.push_back(
          {.node = node.name,
           .subject = fmt::format("GPU {}", gpu.index.value_or(0)),
           .what = fmt::format("a GPU of {} is busy, but stuck at a low clock", node.name),
           .evidence = fmt::format("{}% busy at {}{} MHz and {:.0f} W", *gpu.utilization_percent, *gpu.clock_mhz,
                                   gpu.clock_mhz_max ? fmt::format(" of {}", *gpu.clock_mhz_max) : "", *gpu.power_w),
           .consequence = "everything takes two to three times as long, on all nodes that wait for it",
           .fix = "shut down and unplug the power supply at the wall for a minute, as a reboot does not clear "
                  "it; use the supply that came with the machine"});
    }
  }
  return list;
}

AdviceList find_gpus_off_nvlink(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
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

}  // namespace yoke::check
