// One look at one node, as plain data with JSON round trip: what `yoke watch` streams from each node and records.
// Totals of counters are as the kernel and the devices give them; rates are made of two samples by rates.h. What a
// machine does not give is absent, never 0.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"

namespace yoke::watch {

using Total = std::optional<std::int64_t>;  // of a counter

// Of what costs too much for every sample: sensors, counters of NICs, single RDMA counters, Slurm's jobs.
inline constexpr Seconds kSlowPeriod{5};

struct CpuSample {
  int cores = 0;
  std::int64_t busy = 0, total = 0;  // ticks of all cores since boot
  std::optional<double> load;        // of the last minute
  friend bool operator==(const CpuSample&, const CpuSample&) = default;
};

struct MemorySample {
  std::optional<Bytes> total, available, swap_total, swap_free;
  Total pressure_some_us, pressure_full_us;  // time in which some, or all, tasks waited for memory (PSI)
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

struct DiskSample {
  std::string name;  // "nvme0n1"
  std::int64_t read_bytes = 0, written_bytes = 0;
  friend bool operator==(const DiskSample&, const DiskSample&) = default;
};

struct SensorSample {
  std::string chip, name;  // "spbm", "gpu"
  std::optional<double> celsius, watts;
  friend bool operator==(const SensorSample&, const SensorSample&) = default;
};

struct RailSample {
  std::string interface;
  std::optional<std::string> rail;  // "A", "B": of an interface with an RDMA device
  std::optional<int> port;
  bool up = false, carrier = false;
  Total rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped;
  Total pause_received, pause_sent, discards_received;  // by the NIC, every few seconds (kSlowPeriod)
  std::optional<std::string> rdma_device, rdma_state;
  std::optional<BitsPerSecond> rdma_rate;
  Total rdma_rx_bytes, rdma_tx_bytes;
  Total rdma_errors;       // damage: receive errors, symbol errors, integrity errors, link recoveries
  Total rdma_discards;     // what could not be sent
  Total rdma_retransmits;  // sequence errors and timeouts, after which packets are sent again
  Total link_downed;
  // The same and further counters of the RDMA port one by one, and its physical state: read less often.
  std::optional<int> rdma_physical_state;
  Total receive_errors, receive_discards, link_recoveries, transmit_waits;
  Total out_of_sequence, sequence_errors, ack_timeouts, duplicate_requests, implied_naks;
  std::optional<int> pcie_width, pcie_width_max;
  friend bool operator==(const RailSample&, const RailSample&) = default;
};

struct GpuProcessSample {
  int pid = 0;
  std::optional<std::string> user, command;
  std::optional<Bytes> memory;
  friend bool operator==(const GpuProcessSample&, const GpuProcessSample&) = default;
};

struct GpuSample {
  int index = 0;
  std::optional<std::string> name, uuid;
  std::optional<std::string> lost;  // why it cannot be asked any more: "GPU is lost"
  std::optional<int> utilization_percent, memory_utilization_percent, sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz;
  std::optional<int> temperature_c;
  std::optional<double> power_w, power_limit_w;
  std::optional<std::int64_t> energy_mj;
  std::vector<std::string> clock_limits;  // what holds the clock down now: "power cap", "thermal"
  Total power_violation_ns, thermal_violation_ns;
  std::optional<Bytes> memory_total, memory_used;
  std::optional<int> pcie_width;
  Total pcie_replays, ecc_corrected, ecc_uncorrected, nvlink_rx_bytes, nvlink_tx_bytes;
  std::optional<double> engine_active, tensor_active, memory_active;  // 0 to 1, since the sample before
  Total xid_count;  // since this watch began; absent where the driver gives no events
  std::optional<std::int64_t> xid_last;
  std::vector<GpuProcessSample> processes;
  friend bool operator==(const GpuSample&, const GpuSample&) = default;
};

// A server of models that runs on the node, by its /metrics.
struct EngineSample {
  std::string kind;  // "yoke", "vllm", "sglang", "llama-server"
  int port = 0;
  std::optional<std::string> model;
  std::optional<std::int64_t> running, waiting;
  std::optional<double> cache_usage;  // 0 to 1
  Total prompt_tokens, generated_tokens;
  Total preemptions;                        // requests that lost their place in the cache
  std::optional<double> tokens_per_second;  // where the engine says it itself
  std::optional<bool> canary_up;            // the last request for one token that `yoke serve` made itself: it came
  std::optional<double> canary_seconds;     // how long the last one took
  friend bool operator==(const EngineSample&, const EngineSample&) = default;
};

// Of yoke or of Slurm, or a command of yoke that starts no job.
struct JobSample {
  std::string name;
  std::string since;
  int ranks = 0;  // 0: not known
  std::string command;
  friend bool operator==(const JobSample&, const JobSample&) = default;
};

struct Sample {
  double time = 0;    // seconds since 1970, by the node's clock
  double uptime = 0;  // seconds since boot: does not jump
  CpuSample cpu;
  MemorySample memory;
  std::vector<DiskSample> disks;
  std::optional<Bytes> disk_free;  // of /
  std::vector<SensorSample> sensors;
  std::vector<RailSample> rails;
  Total tcp_retransmits;
  std::vector<GpuSample> gpus;
  std::optional<std::string> gpu_problem;  // why NVML, although there, shows nothing
  std::vector<EngineSample> engines;
  std::vector<JobSample> jobs;
  std::vector<std::string> exporters;  // "node_exporter", "dcgm-exporter": who publishes the same already
  friend bool operator==(const Sample&, const Sample&) = default;
};

Document to_json(const Sample& sample);
void from_json(const Document& document, Sample& sample);  // throws Error(kInvalid)

}  // namespace yoke::watch
