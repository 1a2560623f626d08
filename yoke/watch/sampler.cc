#include "yoke/watch/sampler.h"

#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "yoke/base/fields.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/job/job_record.h"
#include "yoke/probe/nvml_session.h"
#include "yoke/probe/probe.h"
#include "yoke/probe/sources.h"
#include "yoke/watch/engines.h"
#include "yoke/watch/interface_state.h"
#include "yoke/watch/node_files.h"
#include "yoke/watch/slurm_steps.h"

namespace yoke::watch {

template <class Visitor>
void visit_fields(Visitor& visit, SamplerOptions& options) {
  visit.required("interval", options.interval);
  visit.optional("engine_ports", options.engine_ports);
}
Document to_json(const SamplerOptions& options) { return write_fields(options); }
void from_json(const Document& document, SamplerOptions& options) {
  read_fields(document, options);
  if (options.interval.value < kMinInterval || options.interval.value > kMaxInterval) {
    throw Error(ErrorCode::kInvalid, fmt::format("a sample every {} s is not possible", options.interval.value),
                fmt::format("{} to {} s are", kMinInterval, kMaxInterval));
  }
}

namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Interfaces that no cable ends in: of containers and virtual machines.
bool is_made_up(const std::string& name) {
  for (const char* prefix :
       {"veth", "docker", "br-", "virbr", "tap", "cni", "flannel", "cali", "ifb", "dummy", "sit", "tunl", "ip6tnl"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::map<std::string, RailPlace> find_places() {
  std::map<std::string, RailPlace> places;
  const auto machine = try_to([] { return probe::probe_machine(probe::quick_sources_here()); });
  if (!machine) return places;
  for (const spec::NetworkInterface& interface : machine->interfaces) {
    places[interface.name] = {.interface = interface.name,
                              .rail = interface.rail,
                              .port = interface.port,
                              .rdma_device = interface.rdma_device,
                              .pci_address = interface.pci_address};
  }
  return places;
}

}  // namespace

struct Sampler::State {
  explicit State(const SamplerOptions& options)
      : places(find_places()),
        sensor_files(files),
        engines(options.engine_ports.empty() ? usual_engine_ports() : options.engine_ports,
                std::max(options.interval, Seconds{1})) {}

  LiveTree files;
  std::map<std::string, RailPlace> places;
  InterfaceCalls calls;
  SensorFiles sensor_files;
  probe::NvmlSession nvml;
  EngineWatch engines;
  double slow_due = 0;
  Sample slow;  // what is not read for every sample
  std::map<int, GpuProcessSample> owners;
  SlurmSteps slurm;

  void read_slow(const std::vector<RailSample>& rails) {
    slow.sensors = sensor_files.read(files);
    slow.rails = rails;
    for (RailSample& rail : slow.rails) {
      calls.read_nic_counters(rail);
      const auto place = places.find(rail.interface);
      if (place != places.end()) read_rdma_counters(files, place->second, rail);
    }
    slow.jobs = slurm.read(files, utc_now());
  }

  // Of yoke: a few small files, read for each sample, as a measurement may be short.
  std::vector<JobSample> read_jobs() const {
    std::vector<JobSample> jobs;
    for (const auto& read : {job::running_jobs, job::running_commands}) {
      const auto records = try_to(read);
      for (const job::JobRecord& record : records ? *records : std::vector<job::JobRecord>()) {
        jobs.push_back({.name = record.name, .since = record.since, .ranks = record.ranks, .command = record.command});
      }
    }
    jobs.insert(jobs.end(), slow.jobs.begin(), slow.jobs.end());
    return jobs;
  }

  std::vector<RailSample> read_rails() {
    std::vector<RailSample> rails = read_interface_counters(files);
    std::erase_if(rails, [](const RailSample& rail) { return is_made_up(rail.interface); });
    for (RailSample& rail : rails) {
      calls.read_state(rail);
      const auto place = places.find(rail.interface);
      if (place == places.end()) continue;
      rail.rail = place->second.rail;
      rail.port = place->second.port;
      read_rdma_port(files, place->second, rail);
      read_pcie_width(files, place->second, rail);
    }
    return rails;
  }

  // Who a process is does not change.
  GpuProcessSample owner_of(const probe::NvmlProcess& process) {
    const auto [entry, is_new] = owners.try_emplace(process.pid);
    GpuProcessSample& owner = entry->second;
    if (is_new) {
      owner.pid = process.pid;
      const std::string folder = fmt::format("/proc/{}", process.pid);
      owner.command = files.read_trimmed(folder + "/comm");
      struct stat status {};
      passwd entry_of{};
      passwd* found = nullptr;
      std::array<char, 4096> buffer;
      if (stat(folder.c_str(), &status) == 0 &&
          getpwuid_r(status.st_uid, &entry_of, buffer.data(), buffer.size(), &found) == 0) {
        owner.user = found ? std::string(found->pw_name) : std::to_string(status.st_uid);
      }
    }
    GpuProcessSample sample = owner;
    sample.memory = process.memory;
    return sample;
  }

  void read_gpus(Sample& sample) {
    sample.gpu_problem = nvml.failure();
    for (probe::NvmlLoad& load : nvml.read()) {
      GpuSample gpu;
      gpu.index = load.index;
      gpu.name = std::move(load.name);
      gpu.uuid = std::move(load.uuid);
      gpu.lost = std::move(load.lost);
      gpu.utilization_percent = load.utilization_percent;
      gpu.memory_utilization_percent = load.memory_utilization_percent;
      gpu.sm_clock_mhz = load.sm_clock_mhz;
      gpu.sm_clock_max_mhz = load.sm_clock_max_mhz;
      gpu.memory_clock_mhz = load.memory_clock_mhz;
      gpu.temperature_c = load.temperature_c;
      gpu.power_w = load.power_w;
      gpu.power_limit_w = load.power_limit_w;
      gpu.energy_mj = load.energy_mj;
      gpu.clock_limits = std::move(load.clock_limits);
      gpu.power_violation_ns = load.power_violation_ns;
      gpu.thermal_violation_ns = load.thermal_violation_ns;
      gpu.memory_total = load.memory_total;
      gpu.memory_used = load.memory_used;
      gpu.pcie_width = load.pcie_width;
      gpu.pcie_replays = load.pcie_replays;
      gpu.ecc_corrected = load.ecc_corrected;
      gpu.ecc_uncorrected = load.ecc_uncorrected;
      gpu.nvlink_rx_bytes = load.nvlink_rx_bytes;
      gpu.nvlink_tx_bytes = load.nvlink_tx_bytes;
      gpu.engine_active = load.engine_active;
      gpu.tensor_active = load.tensor_active;
      gpu.memory_active = load.memory_active;
      gpu.xid_count = load.xid_count;
      gpu.xid_last = load.xid_last;
      for (const probe::NvmlProcess& process : load.processes) gpu.processes.push_back(owner_of(process));
      sample.gpus.push_back(std::move(gpu));
    }
    if (owners.size() > 4096) owners.clear();
  }
};

Sampler::Sampler(const SamplerOptions& options) : state_(std::make_unique<State>(options)) {}
Sampler::~Sampler() = default;

Sample Sampler::take() {
  Sample sample;
  read_cpu(state_->files, sample.cpu);
  read_memory(state_->files, sample.memory);
  sample.disks = read_disks(state_->files);
  struct statvfs root {};
  if (statvfs("/", &root) == 0) sample.disk_free = Bytes{static_cast<std::int64_t>(root.f_bavail * root.f_frsize)};
  sample.tcp_retransmits = read_tcp_retransmits(state_->files);
  state_->read_gpus(sample);
  sample.engines = state_->engines.latest();
  sample.exporters = state_->engines.exporters();
  // The clock is read beside the counters of the rails, whose rates must be right.
  sample.time = clock_seconds(CLOCK_REALTIME);
  sample.uptime = clock_seconds(CLOCK_BOOTTIME);
  sample.rails = state_->read_rails();
  if (sample.uptime >= state_->slow_due) {
    state_->slow_due = sample.uptime + kSlowPeriod.value;
    state_->read_slow(sample.rails);
  }
  sample.sensors = state_->slow.sensors;
  sample.jobs = state_->read_jobs();
  for (RailSample& rail : sample.rails) {
    for (const RailSample& read : state_->slow.rails) {
      if (read.interface != rail.interface) continue;
      rail.pause_received = read.pause_received;
      rail.pause_sent = read.pause_sent;
      rail.discards_received = read.discards_received;
      copy_rdma_counters(read, rail);
    }
  }
  return sample;
}

Command sampler_command(const Document& question) {
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  const bool is_there = !failure && std::filesystem::exists(self, failure);
  const Document checked = to_json(from_json<SamplerOptions>(question));
  return {
      .argv = {is_there ? self.native() : "/proc/self/exe", kSamplerWord, print_json(checked, JsonLayout::kOneLine)},
      .input_mode = InputMode::kPipe};
}

std::optional<int> run_sampler_part(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || arguments[0] != kSamplerWord) return std::nullopt;
  const auto options = try_to([&] { return from_json<SamplerOptions>(parse_json(arguments[1], "the question")); });
  if (!options) return std::nullopt;
  Sampler sampler(*options);
  const UniqueFd out(dup(STDOUT_FILENO));
  double due = clock_seconds(CLOCK_BOOTTIME);
  while (interrupt_signal() == 0) {
    write_all(out, print_json(to_json(sampler.take()), JsonLayout::kOneLine) + "\n", "standard output");
    const double now = clock_seconds(CLOCK_BOOTTIME);
    due = std::max(due + options->interval.value, now);  // one that came late does not hurry the next
    for (double left = due - now; left > 0 && interrupt_signal() == 0;) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      const int ready = poll(&input, 1, static_cast<int>(std::min(left, 1.0) * 1000) + 1);
      char byte = 0;
      if (ready > 0 && read(STDIN_FILENO, &byte, 1) <= 0) return kExitOk;  // the head has gone
      left = due - clock_seconds(CLOCK_BOOTTIME);
    }
  }
  return kExitOk;
}

}  // namespace yoke::watch
