// Servers with several GPUs: how many there are, how they are joined, and whether the driver fits them.
#include "yoke/check/servers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// Servers that are sold with eight GPUs only, as their firmware names them.
constexpr std::array<std::string_view, 9> kEightGpuProducts = {"XE9680",   "XE9780",  "XE9785",   "DGX H100", "DGXH100",
                                                               "DGX H200", "DGXH200", "DGX B200", "DGX B300"};

struct ExpectedGpus {
  int count = 0;
  std::string why;
};

// Nothing where nobody can tell: a virtual machine may have any number.
std::optional<ExpectedGpus> expected_gpus(const ClusterView& view, const spec::SurveyedNode& node) {
  const spec::Machine& machine = *node.machine;
  const auto& cluster = view.facts.cluster;
  if (cluster && cluster->hardware) {
    const spec::Hardware* named = spec::find_hardware(*cluster->hardware);
    if (named) return ExpectedGpus{named->gpus, fmt::format("the cluster file says hardware: {}", named->name)};
  }
  const std::string product = machine.product.value_or("");
  if (std::ranges::any_of(kEightGpuProducts, [&](auto name) { return product.find(name) != std::string::npos; })) {
    return ExpectedGpus{8, fmt::format("a {} has eight", product)};
  }
  for (const spec::SurveyedNode& other : view.facts.nodes) {
    const bool alike = other.machine && machine.product && other.machine->product == machine.product &&
                       other.machine->vendor == machine.vendor && !is_given_a_part(*other.machine);
    if (alike && other.machine->gpus.size() > machine.gpus.size()) {
      const auto more = static_cast<int>(other.machine->gpus.size());
      return ExpectedGpus{more, fmt::format("{}, which is the same product, has {}", other.name, more)};
    }
  }
  return std::nullopt;
}

// By compute capability: the first release of CUDA that makes code for it and that release's driver (NVIDIA, CUDA
// Toolkit release notes, table "CUDA Toolkit and corresponding driver versions").
struct Support {
  std::string_view capability, gpus, cuda;
  int driver = 0;
};
constexpr std::array kSupport = {Support{"9.0", "H100, H200", "11.8", 520}, Support{"10.0", "B200", "12.8", 570},
                                 Support{"10.3", "B300", "12.9", 575}, Support{"12.0", "RTX PRO 6000", "12.8", 570},
                                 Support{"12.1", "GB10", "12.9", 575}};

const Support* support_of(const spec::Gpu& gpu) {
  for (const Support& row : kSupport) {
    if (gpu.compute_capability == row.capability) return &row;
    if (gpu.compute_capability) continue;  // a driver that is too old does not tell it
    for (const std::string& name : split(std::string(row.gpus), ',')) {
      const std::string full = "NVIDIA " + std::string(trim(name));
      const bool is_it = gpu.name.starts_with(full) && (gpu.name.size() == full.size() || gpu.name[full.size()] == ' ');
      if (is_it) return &row;
    }
  }
  return nullptr;
}

int first_number(std::string_view version) {
  int number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number;
}

bool is_older(std::string_view version, std::string_view wanted) {
  const auto parts = [](std::string_view text) {
    const std::size_t dot = text.find('.');
    return std::pair(first_number(text), dot == std::string_view::npos ? 0 : first_number(text.substr(dot + 1)));
  };
  return parts(version) < parts(wanted);
}

std::string gpu_words(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

}  // namespace

bool is_given_a_part(const spec::Machine& machine) { return machine.containers.inside || machine.allocation; }

const spec::Hardware* server_of(const spec::Machine& machine) {
  const spec::Hardware* hardware = hardware_of(machine);
  return hardware && hardware->nvlinks > 0 ? hardware : nullptr;
}

AdviceList find_missing_gpus(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab || is_given_a_part(*node.machine) || !node.machine->driver) continue;
    const auto expected = expected_gpus(view, node);
    const auto there = static_cast<int>(node.machine->gpus.size());
    if (!expected || there >= expected->count) continue;
    std::vector<std::string> places;
    for (const spec::Gpu& gpu : node.machine->gpus) places.push_back(gpu.pci_address.value_or("?"));
    list.push_back(
        {.node = node.name,
         .subject = "GPU",
         .what = fmt::format("{} has {} GPUs of {}", node.name, there, expected->count),
         .evidence = fmt::format("{}; on the bus are {}", expected->why, places.empty() ? "none" : gpu_words(places)),
         .consequence = "jobs that ask for all GPUs do not start, or wait for this node",
         .fix = "'lspci -d 10de:' and 'dmesg | grep -i nvrm'; power the server off (not only a restart), "
                "then its management controller's log; if it stays away, the board needs service"});
  }
  return list;
}

AdviceList find_missing_nvlinks(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const spec::Hardware* server = node.machine ? server_of(*node.machine) : nullptr;
    if (!server || view.lab || node.machine->gpus.size() < 2) continue;
    const auto& gpus = node.machine->gpus;
    const bool any = std::ranges::any_of(gpus, [](const spec::Gpu& gpu) { return gpu.nvlinks_active.value_or(0) > 0; });
    std::vector<std::string> names, evidence;
    for (const spec::Gpu& gpu : gpus) {
      if (!gpu.index || !gpu.nvlinks_active || *gpu.nvlinks_active >= server->nvlinks) continue;
      if (*gpu.nvlinks_active == 0 && any) continue;  // gpu-off-nvlink
      names.push_back(fmt::format("GPU{}", *gpu.index));
      evidence.push_back(fmt::format("GPU{} has {} active", *gpu.index, *gpu.nvlinks_active));
    }
    if (names.empty()) continue;
    list.push_back({.node = node.name,
                    .subject = gpu_words(names),
                    .what = fmt::format("{} of {} {} fewer NVLinks than the {} of its model", gpu_words(names),
                                        node.name, names.size() == 1 ? "has" : "have", server->nvlinks),
                    .evidence = fmt::format("{}", fmt::join(evidence, "; ")),
                    .consequence = "all-reduces inside the server run at the rate of its slowest GPU, or NCCL leaves "
                                   "NVLink",
                    .fix = "'nvidia-smi nvlink -s' names the links; end all jobs, 'nvidia-smi --gpu-reset', restart "
                           "nvidia-fabricmanager; if they stay down, the board needs service"});
  }
  return list;
}

AdviceList find_nvlink_errors(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      const std::int64_t rising = gpu.nvlink_errors_rising.value_or(0);
      const std::int64_t recoveries = gpu.nvlink_recoveries.value_or(0);
      if (rising <= 0 && recoveries <= 0) continue;
      list.push_back(
          {.node = node.name,
           .subject = fmt::format("GPU{}", gpu.index.value_or(0)),
           .what = rising > 0 ? fmt::format("NVLink errors of GPU{} on {} are rising", gpu.index.value_or(0), node.name)
                              : fmt::format("an NVLink of GPU{} on {} had to be trained again", gpu.index.value_or(0),
                                            node.name),
           .evidence = fmt::format("{} recoveries, {} CRC errors and replays since the driver started, {} while it was "
                                   "examined; 0 expected",
                                   recoveries, gpu.nvlink_errors.value_or(0), rising),
           .consequence = "packets are sent again: uneven all-reduce times, and Xid 74 in the end",
           .fix = "'nvidia-smi nvlink -e' names the link; reset the GPU with all jobs ended; if errors come back, the "
                  "board needs service"});
    }
  }
  return list;
}

AdviceList find_stopped_fabric_managers(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab || !server_of(*node.machine)) continue;
    const auto& gpus = node.machine->gpus;
    const auto shown = std::ranges::count_if(gpus, [](const spec::Gpu& gpu) { return gpu.index.has_value(); });
    if (shown < 2) continue;
    std::vector<std::string> apart;
    bool all_joined = true;
    for (const spec::Gpu& gpu : gpus) {
      if (gpu.index && gpu.fabric_state != "completed") all_joined = false;
      if (gpu.index && gpu.fabric_state && *gpu.fabric_state != "completed") {
        apart.push_back(fmt::format("GPU{} {}", *gpu.index, *gpu.fabric_state));
      }
    }
    // In a container the service is not to be seen, and where the GPUs have joined, somebody else runs it.
    const auto& manager = node.machine->fabric_manager;
    const bool stopped = manager && !manager->running && !all_joined && !node.machine->containers.inside;
    if (!stopped && apart.empty()) continue;
    list.push_back({.node = node.name,
                    .what = stopped ? fmt::format("the fabric manager of {} is not running", node.name)
                                    : fmt::format("GPUs of {} have not joined the NVSwitches", node.name),
                    .evidence = !apart.empty()       ? fmt::format("NVML's fabric state: {}", gpu_words(apart))
                                : manager->installed ? "it is installed, and no process of it runs"
                                                     : "it is not installed (/usr/bin/nv-fabricmanager)",
                    .consequence = "CUDA does not start on these GPUs (error 802), or they talk over PCIe",
                    .fix = fmt::format(
                        "{}systemctl enable --now nvidia-fabricmanager; then 'nvidia-smi -q | grep -A2 Fabric' says "
                        "Completed",
                        manager && !manager->installed ? fmt::format("apt-get install nvidia-fabricmanager-{}; ",
                                                                     first_number(node.machine->driver.value_or("580")))
                                                       : "")});
  }
  return list;
}

AdviceList find_differing_fabric_managers(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !node.machine->fabric_manager || !node.machine->driver || !server_of(*node.machine)) continue;
    const auto& version = node.machine->fabric_manager->version;
    if (!version || *version == *node.machine->driver) continue;
    list.push_back({.node = node.name,
                    .subject = "fabric manager",
                    .what = fmt::format("the fabric manager of {} is of another version than the driver", node.name),
                    .evidence = fmt::format("fabric manager {}, driver {}", *version, *node.machine->driver),
                    .consequence = "it refuses to start after the next reboot, and CUDA with it (error 802)",
                    .fix = fmt::format("install nvidia-fabricmanager of version {} and hold both packages together",
                                       *node.machine->driver)});
  }
  return list;
}

AdviceList find_old_drivers(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !node.machine->driver || view.lab) continue;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      const Support* support = support_of(gpu);
      if (!support) continue;
      const int driver = first_number(*node.machine->driver);  // 0: known to be there, but not its version
      const bool old_driver = driver > 0 && driver < support->driver;
      const bool old_cuda = node.machine->cuda && is_older(*node.machine->cuda, support->cuda);
      if (!old_driver && !old_cuda) continue;
      list.push_back(
          {.node = node.name,
           .what = fmt::format("the driver of {} is too old for {}", node.name, gpu.name),
           .evidence = fmt::format("driver {}{}; compute capability {} needs driver {} and CUDA {} or later",
                                   *node.machine->driver, node.machine->cuda ? " with CUDA " + *node.machine->cuda : "",
                                   support->capability, support->driver, support->cuda),
           .consequence = "the GPU does not start, or programs fail with 'no kernel image is available'",
           .fix = fmt::format("install driver {} or later with its fabric manager, on all nodes alike",
                              std::max(support->driver, 580))});
      break;
    }
  }
  return list;
}

AdviceList find_old_toolkits(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !node.machine->cuda_toolkit) continue;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      const Support* support = support_of(gpu);
      if (!support || !is_older(*node.machine->cuda_toolkit, support->cuda)) continue;
      list.push_back(
          {.node = node.name,
           .subject = "/usr/local/cuda",
           .what = fmt::format("the CUDA toolkit of {} cannot compile for {}", node.name, gpu.name),
           .evidence = fmt::format("toolkit {}; compute capability {} needs {}", *node.machine->cuda_toolkit,
                                   support->capability, support->cuda),
           .consequence = "extensions that are compiled at first use fail, or run slower code",
           .fix = fmt::format("install CUDA {} or later, or work in a container that has it", support->cuda)});
      break;
    }
  }
  return list;
}

}  // namespace yoke::check
