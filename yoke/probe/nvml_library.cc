// NVML, asked: libnvidia-ml.so.1 comes with the driver and is loaded where it is. The functions, structs and numbers
// are those of its public ABI (nvml.h of the driver's development package); nothing of it is needed to build.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <span>

#include "yoke/base/shared_library.h"
#include "yoke/probe/cpu_list.h"
#include "yoke/probe/nvml_facts.h"

namespace yoke::probe {
namespace {

using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0;
constexpr unsigned kMaxNvLinks = 64;  // beyond NVML's own limit (36 with NVLink 7)
constexpr unsigned kMaxProcesses = 256;
constexpr int kClockGraphics = 0, kClockMemory = 2;
constexpr int kRemoteIsSwitch = 2;
// nvmlNvLinkErrorCounter_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t.
constexpr int kLinkReplay = 0, kLinkRecovery = 1, kLinkCrcFlit = 2, kLinkCrcData = 3;
constexpr int kEccUncorrected = 1, kEccSinceStart = 0, kEccInLife = 1;

struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

// One library, open for as long as this lives. A symbol that an older driver lacks is as good as "not supported".
class Nvml {
 public:
  Nvml() : library_(SharedLibrary::open({.what = "NVML", .names = {"libnvidia-ml.so.1"}})) {}
  ~Nvml() {
    if (!library_) return;
    if (ready_) call<>("nvmlShutdown");
    library_->close();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_there() const { return library_.has_value(); }
  std::optional<std::string> init() {  // what went wrong
    const int result = call<>("nvmlInit_v2");
    ready_ = result == kSuccess;
    if (ready_) return std::nullopt;
    auto* const describe = reinterpret_cast<const char* (*)(int)>(library_->find("nvmlErrorString"));
    return describe ? describe(result) : fmt::format("NVML error {}", result);
  }

  template <class... Arguments>
  int call(const char* symbol, Arguments... arguments) const {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(library_->find(symbol));
    return function ? function(arguments...) : -1;
  }

  template <class T, class... Arguments>
  std::optional<T> ask(const char* symbol, Arguments... arguments) const {
    T value{};
    if (call(symbol, arguments..., &value) != kSuccess) return std::nullopt;
    return value;
  }
  std::optional<int> number(const char* symbol, Device device) const {
    const auto value = ask<unsigned>(symbol, device);
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }
  template <class... Arguments>
  std::optional<std::string> text(const char* symbol, Arguments... arguments) const {
    std::array<char, 128> buffer{};
    if (call(symbol, arguments..., buffer.data(), static_cast<unsigned>(buffer.size() - 1)) != kSuccess) {
      return std::nullopt;
    }
    return std::string(buffer.data());
  }

 private:
  Result<SharedLibrary> library_;
  bool ready_ = false;
};

std::vector<std::string> clock_limits(const Nvml& nvml, Device device) {
  constexpr std::array kReasons = {
      std::pair{0x4ULL, "power cap"},   std::pair{0x8ULL, "hardware slowdown"}, std::pair{0x20ULL, "thermal"},
      std::pair{0x40ULL, "thermal"},    std::pair{0x80ULL, "power brake"},      std::pair{0x2ULL, "clock setting"},
      std::pair{0x10ULL, "sync boost"},
  };
  const auto reasons = nvml.ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  std::vector<std::string> names;
  for (const auto& [bit, name] : kReasons) {
    if (reasons && (*reasons & bit) != 0 && (names.empty() || names.back() != name)) names.emplace_back(name);
  }
  return names;
}

std::vector<NvmlProcess> processes_on(const Nvml& nvml, Device device) {
  std::vector<ProcessInfo> found(kMaxProcesses);
  unsigned count = kMaxProcesses;
  if (nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, found.data()) != kSuccess) return {};
  std::vector<NvmlProcess> processes;
  for (const ProcessInfo& process : std::span(found).first(std::min(count, kMaxProcesses))) {
    NvmlProcess row{.pid = static_cast<int>(process.pid)};
    const bool known = process.used_memory != ~0ULL;
    if (known) row.memory = Bytes{static_cast<std::int64_t>(process.used_memory)};
    processes.push_back(row);
  }
  return processes;
}

void ask_links(const Nvml& nvml, Device device, NvmlGpu& gpu) {
  int links = 0;
  int active = 0;
  for (unsigned link = 0; link < kMaxNvLinks; ++link) {
    const auto state = nvml.ask<int>("nvmlDeviceGetNvLinkState", device, link);
    if (!state) break;
    ++links;
    if (*state == 1) ++active;
  }
  if (links == 0) return;
  gpu.nvlink_links = links;
  gpu.nvlink_links_active = active;
}

struct LinkErrors {
  std::optional<std::int64_t> errors, recoveries;
};

// The sum over all links. A link that is down, and NVML of a GPU without counters, refuse.
LinkErrors link_errors(const Nvml& nvml, Device device) {
  LinkErrors sum;
  const auto add = [](std::optional<std::int64_t>& to, std::optional<unsigned long long> value) {
    if (value) to = to.value_or(0) + static_cast<std::int64_t>(*value);
  };
  for (unsigned link = 0; link < kMaxNvLinks; ++link) {
    if (!nvml.ask<int>("nvmlDeviceGetNvLinkState", device, link)) break;
    for (const int kind : {kLinkReplay, kLinkCrcFlit, kLinkCrcData}) {
      add(sum.errors, nvml.ask<unsigned long long>("nvmlDeviceGetNvLinkErrorCounter", device, link, kind));
    }
    add(sum.recoveries, nvml.ask<unsigned long long>("nvmlDeviceGetNvLinkErrorCounter", device, link, kLinkRecovery));
  }
  return sum;
}

// How far a GPU is in joining the NVSwitches. Nothing where it has none to join.
std::optional<std::string> fabric_state(const Nvml& nvml, Device device) {
  const auto info = nvml.ask<FabricInfo>("nvmlDeviceGetGpuFabricInfo", device);
  if (!info) return std::nullopt;
  switch (info->state) {
    case 1:
      return "not started";
    case 2:
      return "in progress";
    case 3:
      return info->status == kSuccess ? "completed" : fmt::format("failed with NVML error {}", info->status);
    default:
      return std::nullopt;
  }
}

void ask_health(const Nvml& nvml, Device device, NvmlGpu& gpu) {
  const LinkErrors errors = link_errors(nvml, device);
  gpu.nvlink_errors = errors.errors;
  gpu.nvlink_recoveries = errors.recoveries;
  gpu.fabric_state = fabric_state(nvml, device);
  const auto ecc = [&](int since) -> std::optional<std::int64_t> {
    const auto count = nvml.ask<unsigned long long>("nvmlDeviceGetTotalEccErrors", device, kEccUncorrected, since);
    return count ? std::optional(static_cast<std::int64_t>(*count)) : std::nullopt;
  };
  gpu.ecc_uncorrected = ecc(kEccSinceStart);
  gpu.ecc_uncorrected_total = ecc(kEccInLife);
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml.call("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed) == kSuccess) {
    gpu.row_remap_pending = pending != 0;
    gpu.row_remap_failed = failed != 0;
  }
}

void ask_load(const Nvml& nvml, Device device, NvmlGpu& gpu) {
  const auto clock = [&](const char* symbol, int which) -> std::optional<int> {
    const auto value = nvml.ask<unsigned>(symbol, device, which);
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  const auto watts = [&](const char* symbol) -> std::optional<double> {
    const auto milliwatts = nvml.ask<unsigned>(symbol, device);
    return milliwatts ? std::optional(*milliwatts / 1000.0) : std::nullopt;
  };
  gpu.clock_graphics_mhz = clock("nvmlDeviceGetClockInfo", kClockGraphics);
  gpu.clock_graphics_max_mhz = clock("nvmlDeviceGetMaxClockInfo", kClockGraphics);
  gpu.clock_memory_max_mhz = clock("nvmlDeviceGetMaxClockInfo", kClockMemory);
  gpu.clock_limits = clock_limits(nvml, device);
  gpu.power_w = watts("nvmlDeviceGetPowerUsage");
  gpu.power_limit_w = watts("nvmlDeviceGetEnforcedPowerLimit");
  gpu.power_limit_default_w = watts("nvmlDeviceGetPowerManagementDefaultLimit");
  const auto temperature = nvml.ask<unsigned>("nvmlDeviceGetTemperature", device, 0);
  if (temperature) gpu.temperature_c = static_cast<int>(*temperature);
  const auto used = nvml.ask<Utilization>("nvmlDeviceGetUtilizationRates", device);
  if (used) gpu.utilization_percent = static_cast<int>(used->gpu);
}

NvmlGpu ask_gpu(const Nvml& nvml, Device device, int index) {
  NvmlGpu gpu{.index = index};
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  int major = 0;
  int minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == kSuccess) {
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
  }
  if (const auto pci = nvml.ask<PciInfo>("nvmlDeviceGetPciInfo_v3", device)) gpu.pci_bus_id = pci->bus_id;
  gpu.vbios_version = nvml.text("nvmlDeviceGetVbiosVersion", device);
  if (const auto mode = nvml.ask<int>("nvmlDeviceGetPersistenceMode", device)) gpu.persistence_mode = *mode != 0;
  gpu.pcie_generation = nvml.number("nvmlDeviceGetCurrPcieLinkGeneration", device);
  gpu.pcie_width = nvml.number("nvmlDeviceGetCurrPcieLinkWidth", device);
  if (const auto memory = nvml.ask<MemoryInfo>("nvmlDeviceGetMemoryInfo", device)) {
    gpu.memory_total = Bytes{static_cast<std::int64_t>(memory->total)};
    gpu.memory_free = Bytes{static_cast<std::int64_t>(memory->free)};
  }
  ask_load(nvml, device, gpu);
  ask_links(nvml, device, gpu);
  ask_health(nvml, device, gpu);
  std::array<unsigned long, 64> mask{};
  if (nvml.call("nvmlDeviceGetCpuAffinity", device, static_cast<unsigned>(mask.size()), mask.data()) == kSuccess) {
    gpu.cpu_affinity = print_cpu_list(mask);
  }
  gpu.processes = processes_on(nvml, device);
  return gpu;
}

// Links that lead to the other GPU, or for each to a switch, through which all see all.
int links_between(const Nvml& nvml, Device from, Device to, const std::string& to_bus_id) {
  int direct = 0;
  const auto to_switch = [&](Device device, const std::string* bus_id) {
    int count = 0;
    for (unsigned link = 0; link < kMaxNvLinks; ++link) {
      const auto state = nvml.ask<int>("nvmlDeviceGetNvLinkState", device, link);
      if (!state) break;
      if (*state != 1) continue;
      const auto kind = nvml.ask<int>("nvmlDeviceGetNvLinkRemoteDeviceType", device, link);
      if (kind == kRemoteIsSwitch) ++count;
      const auto pci = bus_id ? nvml.ask<PciInfo>("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link) : std::nullopt;
      if (pci && *bus_id == pci->bus_id) ++direct;
    }
    return count;
  };
  const int near = to_switch(from, &to_bus_id);
  const int far = to_switch(to, nullptr);
  return direct + std::min(near, far);
}

std::string path_between(const Nvml& nvml, Device from, Device to, const std::string& to_bus_id) {
  if (const int links = links_between(nvml, from, to, to_bus_id); links > 0) return fmt::format("NV{}", links);
  switch (nvml.ask<int>("nvmlDeviceGetTopologyCommonAncestor", from, to).value_or(-1)) {
    case 0:
    case 10:
      return "PIX";
    case 20:
      return "PXB";
    case 30:
      return "PHB";
    case 40:
      return "NODE";
    default:
      return "SYS";
  }
}

NvmlTopology ask_topology(const Nvml& nvml, const std::vector<Device>& devices, const std::vector<NvmlGpu>& gpus) {
  NvmlTopology topology;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::vector<std::string> row;
    for (std::size_t j = 0; j < devices.size(); ++j) {
      row.push_back(i == j ? "X" : path_between(nvml, devices[i], devices[j], gpus[j].pci_bus_id.value_or("")));
    }
    // By NVML's number: with a GPU that has fallen off the bus the places of those behind it differ from it.
    topology.matrix.rows.emplace_back(fmt::format("GPU{}", gpus[i].index), std::move(row));
  }
  return topology;
}

}  // namespace

NvmlFacts read_nvml() {
  Nvml nvml;
  NvmlFacts facts;
  if (!nvml.is_there()) return facts;
  facts.failure = nvml.init();
  if (facts.failure) return facts;
  facts.driver_version = nvml.text("nvmlSystemGetDriverVersion");
  if (const auto cuda = nvml.ask<int>("nvmlSystemGetCudaDriverVersion_v2")) {
    facts.cuda_version = fmt::format("{}.{}", *cuda / 1000, *cuda % 1000 / 10);
  }
  std::vector<Device> devices;
  const unsigned count = nvml.ask<unsigned>("nvmlDeviceGetCount_v2").value_or(0);
  for (unsigned index = 0; index < count; ++index) {
    const auto device = nvml.ask<Device>("nvmlDeviceGetHandleByIndex_v2", index);
    if (!device) continue;  // fallen off the bus: it is still seen there by its PCI function, or not at all
    devices.push_back(*device);
    facts.gpus.push_back(ask_gpu(nvml, *device, static_cast<int>(index)));
  }
  if (devices.size() > 1) facts.topology = ask_topology(nvml, devices, facts.gpus);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    NvmlGpu& gpu = facts.gpus[i];
    if (!gpu.nvlink_errors) continue;
    const LinkErrors now = link_errors(nvml, devices[i]);
    if (now.errors) gpu.nvlink_errors_rising = std::max<std::int64_t>(0, *now.errors - *gpu.nvlink_errors);
  }
  return facts;
}

}  // namespace yoke::probe
