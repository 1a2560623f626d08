// GPUs that run, but not as they should: held back, held by somebody, or with faults that the driver counted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "yoke/check/rules.h"
#include "yoke/check/servers.h"

namespace yoke::check {
namespace {

using namespace literals;

// A GPU at full load may run below its highest clock; below these shares of it something holds it down.
constexpr double kMinThermalShare = 0.75;
constexpr double kMinLockedShare = 0.7;
constexpr double kMinHotShare = 0.6;
constexpr int kHot = 90;  // C: NVIDIA's slowdown temperatures of data-center GPUs are 87 to 95
constexpr int kWorkingPercent = 50;
constexpr double kMinPowerLimit = 0.9;  // of the default
constexpr double kMaxHeld = 0.05;       // of a GPU's memory: the driver itself takes less than 1%
constexpr Bytes kMinHeld = 1_GiB;

std::string gpu_subject(const spec::Gpu& gpu) { return fmt::format("GPU {}", gpu.index.value_or(0)); }

bool has_limit(const spec::Gpu& gpu, std::string_view name) {
  return std::ranges::find(gpu.clock_limits, name) != gpu.clock_limits.end();
}

bool is_below(const spec::Gpu& gpu, double share) {
  return gpu.clock_mhz && gpu.clock_mhz_max && *gpu.clock_mhz < share * *gpu.clock_mhz_max;
}

std::string clock_words(const spec::Gpu& gpu) {
  std::vector<std::string> parts;
  if (gpu.clock_mhz) {
    parts.push_back(
        fmt::format("{}{} MHz", *gpu.clock_mhz, gpu.clock_mhz_max ? fmt::format(" of {}", *gpu.clock_mhz_max) : ""));
  }
  if (gpu.temperature_c) parts.push_back(fmt::format("{} C", *gpu.temperature_c));
  if (gpu.power_w) parts.push_back(fmt::format("{:.0f} W", *gpu.power_w));
  if (gpu.utilization_percent) parts.push_back(fmt::format("{}% busy", *gpu.utilization_percent));
  if (!gpu.clock_limits.empty()) parts.push_back(fmt::format("held down by: {}", fmt::join(gpu.clock_limits, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool is_throttled(const spec::Gpu& gpu) {
  if (has_limit(gpu, "hardware slowdown") || has_limit(gpu, "power brake")) return true;
  if (has_limit(gpu, "thermal") && is_below(gpu, kMinThermalShare)) return true;
  const bool works = gpu.utilization_percent.value_or(0) >= kWorkingPercent;
  return works && gpu.temperature_c.value_or(0) >= kHot && is_below(gpu, kMinHotShare);
}

// Those that mean broken or failing hardware (NVIDIA's catalogue of Xid errors); what a program did wrong (13, 31, 43,
// 45) is none of them.
struct KnownXid {
  int number;
  std::string_view what;
};
constexpr std::array kHardwareXids = {KnownXid{48, "a memory error that could not be corrected"},
                                      KnownXid{61, "the GPU's microcontroller failed"},
                                      KnownXid{62, "the GPU's microcontroller halted"},
                                      KnownXid{64, "a bad row of memory could not be replaced"},
                                      KnownXid{74, "an NVLink error"},
                                      KnownXid{79, "it has fallen off the bus"},
                                      KnownXid{92, "many corrected memory errors"},
                                      KnownXid{94, "a contained memory error"},
                                      KnownXid{95, "an uncontained memory error"},
                                      KnownXid{119, "its GSP firmware does not answer"},
                                      KnownXid{120, "its GSP firmware failed"},
                                      KnownXid{121, "an error of the link to the processor"},
                                      KnownXid{140, "a memory error that could not be recovered"},
                                      KnownXid{143, "its firmware does not start"},
                                      KnownXid{144, "an NVLink error (SAW)"},
                                      KnownXid{145, "an NVLink error (RLW)"},
                                      KnownXid{146, "an NVLink error (TLW)"},
                                      KnownXid{147, "an NVLink error (TREX)"},
                                      KnownXid{148, "an NVLink error (NVLPW_CTRL)"},
                                      KnownXid{149, "an NVLink error (NETIR)"},
                                      KnownXid{150, "an NVLink error (MSE)"}};

const spec::Gpu* gpu_at(const spec::Machine& machine, const std::string& pci_address) {
  for (const spec::Gpu& gpu : machine.gpus) {
    if (gpu.pci_address && gpu.pci_address->starts_with(pci_address)) return &gpu;
  }
  return nullptr;
}

struct HeldMemory {
  Bytes used;
  std::string who;
};

// What is taken of an idle GPU's memory: by nobody who shows, or by somebody who has taken this GPU and not the others.
std::optional<HeldMemory> held_memory(const spec::Machine& machine, const spec::Gpu& gpu) {
  const auto used_of = [](const spec::Gpu& one) {
    return one.memory && one.memory_free ? *one.memory - *one.memory_free : Bytes{0};
  };
  const auto is_held = [&](const spec::Gpu& one) {
    return one.memory && used_of(one) >= kMinHeld && used_of(one) / *one.memory > kMaxHeld;
  };
  if (!is_held(gpu) || gpu.utilization_percent.value_or(0) > 0) return std::nullopt;
  if (gpu.processes.empty()) return HeldMemory{used_of(gpu), "no process shows it"};
  const bool others_free =
      std::ranges::any_of(machine.gpus, [&](const spec::Gpu& one) { return one.index && !is_held(one); });
  if (!others_free) return std::nullopt;  // a server that waits for requests
  std::vector<int> pids;
  for (const spec::GpuProcess& process : gpu.processes) pids.push_back(process.pid);
  return HeldMemory{used_of(gpu), fmt::format("process {}", fmt::join(pids, ", "))};
}

template <class Look>
AdviceList for_each_gpu(const ClusterView& view, Look&& look) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      if (!gpu.index) continue;  // gpu-dead
      std::optional<Advice> advice = look(node, gpu);
      if (!advice) continue;
      advice->node = node.name;
      advice->subject = gpu_subject(gpu);
      list.push_back(*std::move(advice));
    }
  }
  return list;
}

}  // namespace

AdviceList find_throttled_gpus(const ClusterView& view) {
  return for_each_gpu(view, [](const spec::SurveyedNode& node, const spec::Gpu& gpu) -> std::optional<Advice> {
    if (!is_throttled(gpu)) return std::nullopt;
    return Advice{.what = fmt::format("GPU {} of {} is slowed down by heat or power", *gpu.index, node.name),
                  .evidence = clock_words(gpu),
                  .consequence = "every job that spans it runs at the rate of this GPU",
                  .fix =
                      "look at the fans, the air or coolant and the inlet temperature, and for 'power brake' at the "
                      "power supplies ('ipmitool sel list'); 'nvidia-smi -q -d PERFORMANCE' names the reason"};
  });
}

AdviceList find_locked_clocks(const ClusterView& view) {
  return for_each_gpu(view, [](const spec::SurveyedNode& node, const spec::Gpu& gpu) -> std::optional<Advice> {
    const bool works = gpu.utilization_percent.value_or(0) >= kWorkingPercent;
    if (!works || !has_limit(gpu, "clock setting") || !is_below(gpu, kMinLockedShare)) return std::nullopt;
    return Advice{
        .what = fmt::format("somebody has set the clock of GPU {} on {} low", *gpu.index, node.name),
        .evidence = clock_words(gpu),
        .consequence = "every job that spans it runs at the rate of this GPU",
        .fix = fmt::format("'nvidia-smi -i {} --reset-gpu-clocks; nvidia-smi -i {} --reset-applications-clocks'",
                           *gpu.index, *gpu.index)};
  });
}

AdviceList find_low_power_limits(const ClusterView& view) {
  return for_each_gpu(view, [](const spec::SurveyedNode& node, const spec::Gpu& gpu) -> std::optional<Advice> {
    if (!gpu.power_limit_w || !gpu.power_limit_default_w) return std::nullopt;
    if (*gpu.power_limit_w >= kMinPowerLimit * *gpu.power_limit_default_w) return std::nullopt;
    return Advice{
        .what = fmt::format("the power limit of GPU {} on {} is lowered", *gpu.index, node.name),
        .evidence = fmt::format("{:.0f} W; its default is {:.0f} W", *gpu.power_limit_w, *gpu.power_limit_default_w),
        .consequence = "its clock falls under load, and every job that spans it waits for it",
        .fix =
            fmt::format("'nvidia-smi -i {} -pl {:.0f}', unless the rack's power is shared on purpose: then all alike",
                        *gpu.index, *gpu.power_limit_default_w)};
  });
}

AdviceList find_held_gpu_memory(const ClusterView& view) {
  return for_each_gpu(view, [](const spec::SurveyedNode& node, const spec::Gpu& gpu) -> std::optional<Advice> {
    if (!server_of(*node.machine) || is_given_a_part(*node.machine)) return std::nullopt;
    const auto held = held_memory(*node.machine, gpu);
    if (!held) return std::nullopt;
    return Advice{.what = fmt::format("{} of GPU {} on {} are held while it does nothing", yoke::to_string(held->used),
                                      *gpu.index, node.name),
                  .evidence = fmt::format("{} of {} free, 0% busy; {}", yoke::to_string(*gpu.memory_free),
                                          yoke::to_string(*gpu.memory), held->who),
                  .consequence = "the next job runs out of memory on this GPU",
                  .fix = gpu.processes.empty()
                             ? fmt::format("'fuser -v /dev/nvidia{}' shows who has it open, also in containers; if "
                                           "nobody has, 'nvidia-smi --gpu-reset -i {}'",
                                           *gpu.index, *gpu.index)
                             : "end what a job left behind ('ps -fp PID'), if it is nobody's"};
  });
}

AdviceList find_ecc_errors(const ClusterView& view) {
  return for_each_gpu(view, [](const spec::SurveyedNode& node, const spec::Gpu& gpu) -> std::optional<Advice> {
    if (gpu.ecc_uncorrected.value_or(0) <= 0) return std::nullopt;
    return Advice{
        .what = fmt::format("the memory of GPU {} on {} had errors that could not be corrected", *gpu.index, node.name),
        .evidence = fmt::format("{} since the driver started, {} in its life; 0 expected", *gpu.ecc_uncorrected,
                                gpu.ecc_uncorrected_total.value_or(*gpu.ecc_uncorrected)),
        .consequence = "jobs on it end with a CUDA error, or have computed with wrong values",
        .fix =
            "end all jobs and reset it ('nvidia-smi --gpu-reset'), so that the row is replaced; if errors "
            "come back, 'dcgmi diag -r 3' and service"};
  });
}

AdviceList find_row_remaps(const ClusterView& view) {
  return for_each_gpu(view, [](const spec::SurveyedNode& node, const spec::Gpu& gpu) -> std::optional<Advice> {
    const bool failed = gpu.row_remap_failed.value_or(false);
    if (!failed && !gpu.row_remap_pending.value_or(false)) return std::nullopt;
    return Advice{
        .what = failed ? fmt::format("GPU {} of {} could not replace a bad row of memory", *gpu.index, node.name)
                       : fmt::format("GPU {} of {} waits for a reset to replace a bad row of memory", *gpu.index,
                                     node.name),
        .evidence = failed ? "NVML: row remapping failed" : "NVML: row remapping is pending",
        .consequence =
            failed ? "the next error in this row ends the job, each time" : "until the reset, the bad row stays in use",
        .fix = failed ? "the GPU needs service (NVIDIA's field diagnostic, then replacement)"
                      : fmt::format("end all jobs, then 'nvidia-smi --gpu-reset -i {}' or a reboot", *gpu.index)};
  });
}

AdviceList find_xids(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab) continue;  // a lab's nodes share this machine's kernel log
    for (const spec::XidLine& xid : node.machine->xids) {
      const auto known = std::ranges::find(kHardwareXids, xid.number, &KnownXid::number);
      const spec::Gpu* gpu = gpu_at(*node.machine, xid.pci_address);
      if (known == kHardwareXids.end() || (gpu && !gpu->index)) continue;
      list.push_back(
          {.node = node.name,
           .subject = gpu ? gpu_subject(*gpu) : xid.pci_address,
           .what =
               fmt::format("{} of {} reported {} (Xid {})", gpu ? gpu_subject(*gpu) : "the GPU at " + xid.pci_address,
                           node.name, known->what, xid.number),
           .evidence = fmt::format("{}{}", xid.line, xid.count > 1 ? fmt::format(" ({} times)", xid.count) : ""),
           .consequence = "jobs on it failed, and the next may",
           .fix = "drain the node, reset the GPU or reboot; if it comes back, 'dcgmi diag -r 3' and service"});
    }
  }
  return list;
}

AdviceList find_persistence_off(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !server_of(*node.machine) || node.machine->containers.inside) continue;
    std::vector<int> off;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      if (gpu.index && gpu.persistence == false) off.push_back(*gpu.index);
    }
    if (off.empty()) continue;
    list.push_back(
        {.node = node.name,
         .subject = "persistence",
         .what = fmt::format("the driver of {} is unloaded whenever no program uses a GPU", node.name),
         .evidence = fmt::format("persistence mode is off on GPU {}", fmt::join(off, ", ")),
         .consequence = "each job starts seconds later, and settings and error counters are lost between jobs",
         .fix = "systemctl enable --now nvidia-persistenced"});
  }
  return list;
}

}  // namespace yoke::check
