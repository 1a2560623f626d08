// The functions, structs and numbers are those of NVML's public ABI (nvml.h of the driver's development package).
#include "yoke/probe/nvml_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "yoke/base/shared_library.h"

namespace yoke::probe {

struct NvmlDeviceOfLibrary;
struct NvmlEventSetOfLibrary;
struct NvmlActivityOfLibrary;

namespace {

using NvmlHandle = NvmlDeviceOfLibrary*;
using NvmlEvents = NvmlEventSetOfLibrary*;
constexpr int kNvmlSuccess = 0, kNvmlLost = 15, kNvmlUnknown = 999;
constexpr int kNvmlClockSm = 1, kNvmlClockMemory = 2;
constexpr unsigned kFieldNvlinkSent = 138, kFieldNvlinkReceived = 139;  // KiB of data, all links
constexpr unsigned kAllLinks = ~0U;
constexpr unsigned long long kXidEvent = 8;
constexpr unsigned kMaxLoadProcesses = 64;

struct LoadMemory {
  unsigned long long total, free, used;
};
struct LoadUtilization {
  unsigned gpu, memory;
};
struct LoadViolation {
  unsigned long long reference_time, violation_time;
};
struct LoadProcess {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
struct LoadField {
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type, result;
  unsigned long long value;
};
// Of nvmlGpmMetricsGet, version 1: what the units of a Hopper GPU or a newer one did between two samples. The library
// looks at the first `count` metrics; 98 are the fewest that a header has had room for.
enum Activity : unsigned { kEngineActivity = 1, kTensorActivity = 5, kMemoryActivity = 10 };
struct LoadActivity {
  unsigned metric;
  int result;
  double percent;
  const char *short_name, *long_name, *unit;
};
struct LoadActivities {
  unsigned version, count;
  NvmlActivityOfLibrary *before, *after;
  std::array<LoadActivity, 98> metrics;
};
struct LoadActivitySupport {
  unsigned version, is_supported;
};
struct LoadEvent {
  NvmlHandle device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

template <class T>
std::optional<int> as_int(const std::optional<T>& value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}
template <class T>
std::optional<std::int64_t> as_total(const std::optional<T>& value) {
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::optional<double> share_of(const LoadActivity& metric) {
  const bool is_valid = metric.result == kNvmlSuccess && metric.percent >= 0 && metric.percent <= 100;
  return is_valid ? std::optional(metric.percent / 100) : std::nullopt;
}

std::vector<std::string> limit_names(unsigned long long reasons) {
  constexpr std::array kNames = {
      std::pair{0x4ULL, "power cap"},    std::pair{0x8ULL, "hardware slowdown"}, std::pair{0x60ULL, "thermal"},
      std::pair{0x80ULL, "power brake"}, std::pair{0x2ULL, "clock setting"},     std::pair{0x10ULL, "sync boost"},
  };
  std::vector<std::string> names;
  for (const auto& [bits, name] : kNames) {
    if ((reasons & bits) != 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace

struct NvmlSession::State {
  struct Xids {
    std::int64_t count = 0;
    std::optional<std::int64_t> last = {};
  };

  Result<SharedLibrary> library = SharedLibrary::open({.what = "NVML", .names = {"libnvidia-ml.so.1"}});
  std::map<const char*, void*> functions;  // by the literal's address: each is looked up once
  bool ready = false;
  std::optional<std::string> failure;
  unsigned seen = 0;                   // the most GPUs that were there
  std::map<unsigned, NvmlLoad> known;  // names of what was seen
  NvmlEvents events = nullptr;
  std::map<NvmlHandle, Xids> xids;
  struct ActivitySamples {
    NvmlActivityOfLibrary *before = nullptr, *after = nullptr;  // both missing: the GPU does not give them
    bool has_before = false;
  };
  std::map<NvmlHandle, ActivitySamples> activities;

  template <class... Arguments>
  int call(const char* symbol, Arguments... arguments) {
    const auto [entry, is_new] = functions.try_emplace(symbol, nullptr);
    if (is_new) entry->second = library->find(symbol);
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(entry->second);
    return function ? function(arguments...) : -1;
  }
  template <class T, class... Arguments>
  std::optional<T> ask(const char* symbol, Arguments... arguments) {
    T value{};
    if (call(symbol, arguments..., &value) != kNvmlSuccess) return std::nullopt;
    return value;
  }
  std::optional<std::string> text(const char* symbol, NvmlHandle device) {
    std::array<char, 128> buffer{};
    if (call(symbol, device, buffer.data(), static_cast<unsigned>(buffer.size() - 1)) != kNvmlSuccess) return {};
    return std::string(buffer.data());
  }
  std::string describe(int result) {
    auto* const function = reinterpret_cast<const char* (*)(int)>(library->find("nvmlErrorString"));
    const char* const words = function ? function(result) : nullptr;
    return words ? words : fmt::format("NVML error {}", result);
  }

  void open() {
    if (!library) return;
    const int result = call("nvmlInit_v2");
    ready = result == kNvmlSuccess;
    if (!ready) {
      failure = describe(result);
      return;
    }
    if (call("nvmlEventSetCreate", &events) != kNvmlSuccess) events = nullptr;
  }

  void register_events(NvmlHandle device) {
    if (!events || xids.contains(device)) return;
    if (call("nvmlDeviceRegisterEvents", device, kXidEvent, events) == kNvmlSuccess) xids[device] = {};
  }

  void take_events() {
    for (int i = 0; events && !xids.empty() && i < 64; ++i) {
      LoadEvent event{};
      if (call("nvmlEventSetWait_v2", events, &event, 0U) != kNvmlSuccess) return;
      const auto of = xids.find(event.device);
      if (of == xids.end() || (event.type & kXidEvent) == 0) continue;
      ++of->second.count;
      of->second.last = static_cast<std::int64_t>(event.data);
    }
  }

  void read_clocks(NvmlHandle device, NvmlLoad& gpu) {
    gpu.sm_clock_mhz = as_int(ask<unsigned>("nvmlDeviceGetClockInfo", device, kNvmlClockSm));
    gpu.memory_clock_mhz = as_int(ask<unsigned>("nvmlDeviceGetClockInfo", device, kNvmlClockMemory));
    if (!gpu.sm_clock_max_mhz) {
      gpu.sm_clock_max_mhz = as_int(ask<unsigned>("nvmlDeviceGetMaxClockInfo", device, kNvmlClockSm));
    }
    const auto reasons = ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
    if (reasons) gpu.clock_limits = limit_names(*reasons);
    const auto violated = [&](int policy) -> std::optional<std::int64_t> {
      const auto time = ask<LoadViolation>("nvmlDeviceGetViolationStatus", device, policy);
      return time ? std::optional(static_cast<std::int64_t>(time->violation_time)) : std::nullopt;
    };
    gpu.power_violation_ns = violated(0);
    gpu.thermal_violation_ns = violated(1);
  }

  void read_counters(NvmlHandle device, NvmlLoad& gpu) {
    gpu.pcie_width = as_int(ask<unsigned>("nvmlDeviceGetCurrPcieLinkWidth", device));
    gpu.pcie_replays = as_total(ask<unsigned>("nvmlDeviceGetPcieReplayCounter", device));
    gpu.ecc_corrected = as_total(ask<unsigned long long>("nvmlDeviceGetTotalEccErrors", device, 0, 0));
    gpu.ecc_uncorrected = as_total(ask<unsigned long long>("nvmlDeviceGetTotalEccErrors", device, 1, 0));
    std::array<LoadField, 2> fields{};
    fields[0].field = kFieldNvlinkSent;
    fields[1].field = kFieldNvlinkReceived;
    for (LoadField& field : fields) field.scope = kAllLinks;
    if (call("nvmlDeviceGetFieldValues", device, 2, fields.data()) == kNvmlSuccess) {
      const auto bytes = [](const LoadField& field) -> std::optional<std::int64_t> {
        if (field.result != kNvmlSuccess) return std::nullopt;
        return static_cast<std::int64_t>(field.value * 1024);
      };
      gpu.nvlink_tx_bytes = bytes(fields[0]);
      gpu.nvlink_rx_bytes = bytes(fields[1]);
    }
  }

  ActivitySamples& activity_of(NvmlHandle device) {
    const auto [entry, is_new] = activities.try_emplace(device);
    if (!is_new) return entry->second;
    LoadActivitySupport support{.version = 1, .is_supported = 0};
    const bool is_supported =
        call("nvmlGpmQueryDeviceSupport", device, &support) == kNvmlSuccess && support.is_supported != 0;
    for (NvmlActivityOfLibrary** const sample : {&entry->second.before, &entry->second.after}) {
      if (!is_supported || call("nvmlGpmSampleAlloc", sample) != kNvmlSuccess) *sample = nullptr;
    }
    return entry->second;
  }

  void read_activity(NvmlHandle device, NvmlLoad& gpu) {
    ActivitySamples& samples = activity_of(device);
    if (!samples.before || !samples.after) return;
    std::swap(samples.before, samples.after);
    const bool can_compare = samples.has_before;
    samples.has_before = call("nvmlGpmSampleGet", device, samples.after) == kNvmlSuccess;
    if (!can_compare || !samples.has_before) return;
    LoadActivities wanted{.version = 1, .count = 3, .before = samples.before, .after = samples.after, .metrics = {}};
    constexpr std::array kMetrics = {kEngineActivity, kTensorActivity, kMemoryActivity};
    for (std::size_t i = 0; i < kMetrics.size(); ++i) wanted.metrics[i].metric = kMetrics[i];
    if (call("nvmlGpmMetricsGet", &wanted) != kNvmlSuccess) return;
    gpu.engine_active = share_of(wanted.metrics[0]);
    gpu.tensor_active = share_of(wanted.metrics[1]);
    gpu.memory_active = share_of(wanted.metrics[2]);
  }

  void read_processes(NvmlHandle device, NvmlLoad& gpu) {
    std::array<LoadProcess, kMaxLoadProcesses> found{};
    unsigned count = kMaxLoadProcesses;
    if (call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, found.data()) != kNvmlSuccess) return;
    for (unsigned i = 0; i < std::min(count, kMaxLoadProcesses); ++i) {
      NvmlProcess process{.pid = static_cast<int>(found[i].pid), .memory = {}};
      if (found[i].used_memory != ~0ULL) process.memory = Bytes{static_cast<std::int64_t>(found[i].used_memory)};
      gpu.processes.push_back(process);
    }
  }

  NvmlLoad read_gpu(unsigned index) {
    NvmlLoad& once = known.try_emplace(index, NvmlLoad{.index = static_cast<int>(index)}).first->second;
    NvmlHandle device = nullptr;
    int result = call("nvmlDeviceGetHandleByIndex_v2", index, &device);
    unsigned temperature = 0;
    // A GPU that is lost still has its handle: the first question tells.
    const int asked = result == kNvmlSuccess ? call("nvmlDeviceGetTemperature", device, 0, &temperature) : result;
    if (asked == kNvmlLost || asked == kNvmlUnknown) result = asked;
    if (result != kNvmlSuccess) {
      NvmlLoad gone = once;
      gone.lost = describe(result);
      return gone;
    }
    if (!once.uuid) once.uuid = text("nvmlDeviceGetUUID", device);
    if (!once.name) once.name = text("nvmlDeviceGetName", device);
    NvmlLoad gpu = once;
    if (asked == kNvmlSuccess) gpu.temperature_c = static_cast<int>(temperature);
    register_events(device);
    read_clocks(device, gpu);
    once.sm_clock_max_mhz = gpu.sm_clock_max_mhz;
    if (const auto used = ask<LoadUtilization>("nvmlDeviceGetUtilizationRates", device)) {
      gpu.utilization_percent = static_cast<int>(used->gpu);
      gpu.memory_utilization_percent = static_cast<int>(used->memory);
    }
    const auto watts = [](const std::optional<unsigned>& milliwatts) {
      return milliwatts ? std::optional(*milliwatts / 1000.0) : std::nullopt;
    };
    gpu.power_w = watts(ask<unsigned>("nvmlDeviceGetPowerUsage", device));
    gpu.power_limit_w = watts(ask<unsigned>("nvmlDeviceGetEnforcedPowerLimit", device));
    gpu.energy_mj = as_total(ask<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption", device));
    if (const auto memory = ask<LoadMemory>("nvmlDeviceGetMemoryInfo", device)) {
      gpu.memory_total = Bytes{static_cast<std::int64_t>(memory->total)};
      gpu.memory_used = Bytes{static_cast<std::int64_t>(memory->used)};
    }
    read_counters(device, gpu);
    read_activity(device, gpu);
    read_processes(device, gpu);
    if (const auto counted = xids.find(device); counted != xids.end()) {
      gpu.xid_count = counted->second.count;
      gpu.xid_last = counted->second.last;
    }
    return gpu;
  }
};

NvmlSession::NvmlSession() : state_(std::make_unique<State>()) { state_->open(); }

NvmlSession::~NvmlSession() {
  if (!state_->ready) return;
  for (const auto& [device, samples] : state_->activities) {
    if (samples.before) state_->call("nvmlGpmSampleFree", samples.before);
    if (samples.after) state_->call("nvmlGpmSampleFree", samples.after);
  }
  if (state_->events) state_->call("nvmlEventSetFree", state_->events);
  state_->call("nvmlShutdown");
}

const std::optional<std::string>& NvmlSession::failure() const { return state_->failure; }

std::vector<NvmlLoad> NvmlSession::read() {
  std::vector<NvmlLoad> gpus;
  if (!state_->ready) return gpus;
  state_->seen = std::max(state_->seen, state_->ask<unsigned>("nvmlDeviceGetCount_v2").value_or(0));
  state_->take_events();
  for (unsigned index = 0; index < state_->seen; ++index) gpus.push_back(state_->read_gpu(index));
  return gpus;
}

}  // namespace yoke::probe
