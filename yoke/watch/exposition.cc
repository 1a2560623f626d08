#include "yoke/watch/exposition.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>

#include "yoke/watch/metrics_text.h"

namespace yoke::watch {
namespace {

using Labels = MetricsWriter::Labels;

struct PortSeries {
  const char *name, *help;
  Total RailSample::*value;
};
// Names of node_exporter's infiniband collector.
constexpr PortSeries kPortSeries[] = {
    {"node_infiniband_link_downed_total", "Number of times the link failed to recover.", &RailSample::link_downed},
    {"node_infiniband_link_error_recovery_total", "Number of times the link recovered from an error.",
     &RailSample::link_recoveries},
    {"node_infiniband_port_errors_received_total", "Number of packets with an error that were received.",
     &RailSample::receive_errors},
    {"node_infiniband_port_discards_received_total", "Number of inbound packets that the port discarded.",
     &RailSample::receive_discards},
    {"node_infiniband_port_discards_transmitted_total", "Number of outbound packets that the port discarded.",
     &RailSample::rdma_discards},
    {"node_infiniband_port_transmit_wait_total", "Number of ticks in which the port had data and could not send.",
     &RailSample::transmit_waits},
    {"node_infiniband_out_of_sequence_packets_received_total", "Number of packets received out of sequence.",
     &RailSample::out_of_sequence},
    {"node_infiniband_packet_sequence_errors_total", "Number of sequence error NAKs received.",
     &RailSample::sequence_errors},
    {"node_infiniband_local_ack_timeout_errors_total", "Number of times that an acknowledgement was late.",
     &RailSample::ack_timeouts},
    {"node_infiniband_duplicate_requests_packets_total", "Number of requests that were received twice.",
     &RailSample::duplicate_requests},
    {"node_infiniband_implied_nak_seq_errors_total", "Number of acknowledgements beyond what was expected.",
     &RailSample::implied_naks},
};

std::optional<int> port_state(const std::string& name) {
  constexpr const char* kNames[] = {"DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<int>(i) + 1;
  }
  return std::nullopt;
}

class Exposition {
 public:
  Exposition(const Board& board, Exposed exposed) : board_(board), exposed_(exposed) {}

  std::string text() {
    own_series();
    rails();
    engines();
    engine_restarts();
    findings();
    if (exposed_ != Exposed::kOwn) gpus();
    if (exposed_ == Exposed::kAll) machine();
    return writer_.text();
  }

 private:
  using EachNode = std::function<void(const BoardNode&)>;

  static bool exports(const BoardNode& node, const char* exporter) {
    const auto& list = node.sample->exporters;
    return std::find(list.begin(), list.end(), exporter) != list.end();
  }
  void each(const EachNode& function) const {
    for (const BoardNode& node : board_.nodes()) {
      if (node.sample && !node.silent) function(node);
    }
  }
  template <class T>
  void put(Labels labels, const std::optional<T>& value) {
    if (!value) return;
    if constexpr (requires { value->value; }) {
      writer_.series(labels, static_cast<double>(value->value));
    } else {
      writer_.series(labels, static_cast<double>(*value));
    }
  }
  // One value of each node.
  template <class Value>
  void of_nodes(const char* name, const char* type, const char* help, const char* exporter, Value value) {
    writer_.family(name, type, help);
    each([&](const BoardNode& node) {
      if (!exporter || !exports(node, exporter)) put({{"hostname", node.name}}, value(node));
    });
  }
  template <class Value>
  void of_rails(const char* name, const char* type, const char* help, Value value) {
    writer_.family(name, type, help);
    each([&](const BoardNode& node) {
      for (const BoardRail& rail : node.rails) {
        // A port without a cable is no rail, unless the cluster file has it.
        if (!rail.is_listed && (rail.title.empty() || !rail.sample.carrier)) continue;
        put({{"hostname", node.name}, {"device", rail.interface}, {"rail", rail.title}}, value(rail));
      }
    });
  }
  // As dcgm-exporter has them: left out where it runs.
  template <class Value>
  void of_gpus(const char* name, const char* type, const char* help, Value value) {
    writer_.family(name, type, help);
    each([&](const BoardNode& node) {
      if (exports(node, "dcgm-exporter")) return;
      for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
        const GpuSample& gpu = node.sample->gpus[i];
        if (gpu.lost) continue;
        const std::string index = std::to_string(gpu.index);
        const std::string device = "nvidia" + index;
        const std::string uuid = gpu.uuid.value_or("");
        const std::string model = gpu.name.value_or("");
        put({{"gpu", index}, {"UUID", uuid}, {"device", device}, {"modelName", model}, {"hostname", node.name}},
            value_of_gpu(value, gpu, node.rates.gpus[i]));
      }
    });
  }
  template <class Value>
  static auto value_of_gpu(Value value, const GpuSample& gpu, const GpuRates& rates) {
    if constexpr (requires { value(gpu, rates); }) {
      return value(gpu, rates);
    } else {
      return value(gpu);
    }
  }
  template <class Value>
  void of_own_gpus(const char* name, const char* type, const char* help, Value value) {
    writer_.family(name, type, help);
    each([&](const BoardNode& node) {
      for (const GpuSample& gpu : node.sample->gpus) {
        const std::string index = std::to_string(gpu.index);
        put({{"hostname", node.name}, {"gpu", index}}, value(gpu));
      }
    });
  }
  template <class Value>
  void of_interfaces(const char* name, const char* type, const char* help, Value value) {
    writer_.family(name, type, help);
    each([&](const BoardNode& node) {
      if (exports(node, "node_exporter")) return;
      for (const RailSample& rail : node.sample->rails) {
        put({{"hostname", node.name}, {"device", rail.interface}}, value(rail));
      }
    });
  }
  template <class Value>
  void of_ports(const char* name, const char* type, const char* help, Value value) {
    writer_.family(name, type, help);
    each([&](const BoardNode& node) {
      if (exports(node, "node_exporter")) return;
      for (const RailSample& rail : node.sample->rails) {
        if (!rail.rdma_device) continue;
        const std::string half = rail.rail.value_or("");
        put({{"hostname", node.name}, {"device", *rail.rdma_device}, {"port", "1"}, {"rail", half}}, value(rail));
      }
    });
  }

  void of_sensors(std::optional<double> SensorSample::*value, const char* exporter = nullptr) {
    each([&](const BoardNode& node) {
      if (exporter && exports(node, exporter)) return;
      std::map<std::string, int> seen;  // a chip may give two sensors one name
      for (const SensorSample& sensor : node.sample->sensors) {
        if (!(sensor.*value)) continue;
        const int before = seen[sensor.chip + "/" + sensor.name]++;
        const std::string name = before == 0 ? sensor.name : sensor.name + "_" + std::to_string(before);
        put({{"hostname", node.name}, {"chip", sensor.chip}, {"sensor", name}}, sensor.*value);
      }
    });
  }

  void own_series() {
    writer_.family("yoke_node_up", "gauge", "Whether samples of the node come.");
    for (const BoardNode& node : board_.nodes()) {
      writer_.series({{"hostname", node.name}}, node.sample && !node.silent ? 1 : 0);
    }
    writer_.family("yoke_node_last_sample_timestamp_seconds", "gauge", "When the last sample of the node came.");
    for (const BoardNode& node : board_.nodes()) put({{"hostname", node.name}}, node.heard);
    of_nodes("yoke_cpu_busy_ratio", "gauge", "Part of all cores that is busy.", nullptr,
             [](const BoardNode& node) { return node.rates.cpu_busy; });
    of_nodes("yoke_memory_available_bytes", "gauge", "Memory that programs can still have.", nullptr,
             [](const BoardNode& node) { return node.sample->memory.available; });
    of_nodes("yoke_memory_pressure_some_ratio", "gauge", "Part of the time in which tasks waited for memory.", nullptr,
             [](const BoardNode& node) { return node.rates.memory_some; });
    of_nodes("yoke_node_clock_ahead_seconds", "gauge", "How far the node's clock is ahead of the first node's.",
             nullptr, [&](const BoardNode& node) { return board_.clock_ahead(node); });
    of_nodes("yoke_disk_free_bytes", "gauge", "Space on / that programs can still have.", nullptr,
             [](const BoardNode& node) { return node.sample->disk_free; });
    writer_.family("yoke_sensor_power_watts", "gauge", "Power by a sensor of the machine.");
    of_sensors(&SensorSample::watts);
    of_own_gpus("yoke_gpu_lost", "gauge", "Whether a GPU was there and cannot be asked any more.",
                [](const GpuSample& gpu) { return std::optional(gpu.lost ? 1 : 0); });
    of_own_gpus("yoke_gpu_nvlink_receive_bytes_total", "counter", "Data received over all NVLinks of the GPU.",
                [](const GpuSample& gpu) { return gpu.nvlink_rx_bytes; });
    of_own_gpus("yoke_gpu_nvlink_transmit_bytes_total", "counter", "Data sent over all NVLinks of the GPU.",
                [](const GpuSample& gpu) { return gpu.nvlink_tx_bytes; });
    writer_.family("yoke_job_ranks", "gauge", "Ranks of the jobs of yoke that run.");
    each([&](const BoardNode& node) {
      for (const JobSample& job : node.sample->jobs) {
        if (job.ranks > 0) writer_.series({{"hostname", node.name}, {"job", job.name}}, job.ranks);
      }
    });
  }

  void rails() {
    of_rails("yoke_rail_up", "gauge", "Whether the rail has a link.",
             [](const BoardRail& rail) { return std::optional<int>(rail.sample.carrier ? 1 : 0); });
    of_rails(
        "yoke_rail_rdma_active", "gauge", "Whether the RDMA port of the rail is active.", [](const BoardRail& rail) {
          return rail.sample.rdma_state ? std::optional(*rail.sample.rdma_state == "ACTIVE" ? 1 : 0) : std::nullopt;
        });
    of_rails("yoke_rail_receive_bits_per_second", "gauge", "What the rail carries, RDMA or not.",
             [](const BoardRail& rail) { return rail.in; });
    of_rails("yoke_rail_transmit_bits_per_second", "gauge", "What the rail carries, RDMA or not.",
             [](const BoardRail& rail) { return rail.out; });
    of_rails("yoke_rail_errors_total", "counter", "Damaged packets and link recoveries of the RDMA port.",
             [](const BoardRail& rail) { return rail.sample.rdma_errors; });
    of_rails("yoke_rail_discards_total", "counter", "Packets that the RDMA port could not send.",
             [](const BoardRail& rail) { return rail.sample.rdma_discards; });
    of_rails("yoke_rail_retransmits_total", "counter", "Sequence errors and timeouts of the RDMA port.",
             [](const BoardRail& rail) { return rail.sample.rdma_retransmits; });
    of_rails("yoke_rail_pause_received_total", "counter", "Pause frames that the NIC received.",
             [](const BoardRail& rail) { return rail.sample.pause_received; });
    of_rails("yoke_rail_pause_sent_total", "counter", "Pause frames that the NIC sent.",
             [](const BoardRail& rail) { return rail.sample.pause_sent; });
    of_rails("yoke_rail_receive_discards_total", "counter", "Packets that arrived and found no buffer in the NIC.",
             [](const BoardRail& rail) { return rail.sample.discards_received; });
    of_rails("yoke_rail_pcie_width", "gauge", "PCIe lanes of the NIC in use now.",
             [](const BoardRail& rail) { return rail.sample.pcie_width; });
  }

  void engines() {
    const auto of_engines = [&](const char* name, const char* help, auto value, const char* type = "gauge") {
      writer_.family(name, type, help);
      each([&](const BoardNode& node) {
        for (std::size_t i = 0; i < node.sample->engines.size(); ++i) {
          const EngineSample& engine = node.sample->engines[i];
          const std::string port = std::to_string(engine.port);
          const std::string model = engine.model.value_or("");
          put({{"hostname", node.name}, {"engine", engine.kind}, {"port", port}, {"model", model}},
              value(engine, node.rates.engines[i]));
        }
      });
    };
    of_engines("yoke_engine_requests_running", "Requests that are being answered.",
               [](const EngineSample& engine, const EngineRates&) { return engine.running; });
    of_engines("yoke_engine_requests_waiting", "Requests that wait.",
               [](const EngineSample& engine, const EngineRates&) { return engine.waiting; });
    of_engines("yoke_engine_cache_usage_ratio", "Part of the KV cache that is used.",
               [](const EngineSample& engine, const EngineRates&) { return engine.cache_usage; });
    of_engines("yoke_engine_tokens_per_second", "Tokens that are generated.",
               [](const EngineSample& engine, const EngineRates& rates) {
                 return rates.generated_tokens ? rates.generated_tokens : engine.tokens_per_second;
               });
    of_engines("yoke_engine_canary_up", "Whether the last request for one token of yoke serve's own was answered.",
               [](const EngineSample& engine, const EngineRates&) {
                 return engine.canary_up ? std::optional(*engine.canary_up ? 1 : 0) : std::nullopt;
               });
    of_engines("yoke_engine_canary_seconds", "How long that took with nothing else to do.",
               [](const EngineSample& engine, const EngineRates&) { return engine.canary_seconds; });
    of_engines(
        "yoke_engine_generated_tokens_total", "Tokens that the engine has generated since its start.",
        [](const EngineSample& engine, const EngineRates&) { return engine.generated_tokens; }, "counter");
    of_engines(
        "yoke_engine_prompt_tokens_total", "Tokens of prompts that the engine has read since its start.",
        [](const EngineSample& engine, const EngineRates&) { return engine.prompt_tokens; }, "counter");
  }

  // Also of one that is not there now.
  void engine_restarts() {
    writer_.family("yoke_engine_recent_restarts", "gauge", "How often the engine was started again within 10 minutes.");
    each([&](const BoardNode& node) {
      for (const auto& [port, past] : node.past.engines()) {
        const std::string number = std::to_string(port);
        writer_.series({{"hostname", node.name}, {"engine", past.kind}, {"port", number}},
                       node.past.restarts(port, board_.now()));
      }
    });
  }

  void findings() {
    writer_.family("yoke_finding", "gauge", "Findings that are open now.");
    for (const TrackedFinding& tracked : board_.findings().open()) {
      const spec::Finding& finding = tracked.finding;
      const std::string host = finding.node.value_or("");
      const std::string subject = finding.subject.value_or("");
      writer_.series({{"hostname", host},
                      {"rule", finding.rule},
                      {"severity", spec::to_string(finding.severity)},
                      {"subject", subject}},
                     1);
    }
  }

  void gpus() {
    of_gpus("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).",
            [](const GpuSample& gpu) { return gpu.sm_clock_mhz; });
    of_gpus("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).",
            [](const GpuSample& gpu) { return gpu.memory_clock_mhz; });
    of_gpus("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).",
            [](const GpuSample& gpu) { return gpu.temperature_c; });
    of_gpus("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", [](const GpuSample& gpu) { return gpu.power_w; });
    of_gpus("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ).",
            [](const GpuSample& gpu) { return gpu.energy_mj; });
    of_gpus("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).",
            [](const GpuSample& gpu) { return gpu.utilization_percent; });
    of_gpus("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).",
            [](const GpuSample& gpu) { return gpu.memory_utilization_percent; });
    of_gpus("DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", [](const GpuSample& gpu) {
      return gpu.xid_count ? std::optional(gpu.xid_last.value_or(0)) : std::nullopt;
    });
    of_gpus("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.",
            [](const GpuSample& gpu) { return gpu.pcie_replays; });
    of_gpus("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Throttling duration due to power constraints (in ns).",
            [](const GpuSample& gpu) { return gpu.power_violation_ns; });
    of_gpus("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "Throttling duration due to thermal constraints (in ns).",
            [](const GpuSample& gpu) { return gpu.thermal_violation_ns; });
    of_gpus("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Total number of single-bit volatile ECC errors.",
            [](const GpuSample& gpu) { return gpu.ecc_corrected; });
    of_gpus("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Total number of double-bit volatile ECC errors.",
            [](const GpuSample& gpu) { return gpu.ecc_uncorrected; });
    of_gpus("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.",
            [](const GpuSample& gpu) { return gpu.engine_active; });
    of_gpus("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Ratio of cycles the tensor pipe is active.",
            [](const GpuSample& gpu) { return gpu.tensor_active; });
    of_gpus("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Ratio of cycles the device memory interface is active.",
            [](const GpuSample& gpu) { return gpu.memory_active; });
    // dcgm-exporter calls it a counter; what DCGM gives is the rate of both directions in thousands of KiB/s
    // (ReadAndCacheNvLinkBandwidth of DcgmCacheManager.cpp).
    of_gpus("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "gauge", "NVLink bandwidth of all lanes, both directions (in MB/s).",
            [](const GpuSample&, const GpuRates& rates) -> std::optional<double> {
              if (!rates.nvlink_received || !rates.nvlink_sent) return std::nullopt;
              return (rates.nvlink_received->value + rates.nvlink_sent->value) / 1024 / 1000;
            });
    const auto mebibytes = [](const std::optional<Bytes>& size) {
      return size ? std::optional(static_cast<double>(size->value) / (1 << 20)) : std::nullopt;
    };
    of_gpus("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).",
            [&](const GpuSample& gpu) { return mebibytes(gpu.memory_used); });
    of_gpus("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", [&](const GpuSample& gpu) {
      return gpu.memory_total && gpu.memory_used ? mebibytes(*gpu.memory_total - *gpu.memory_used) : std::nullopt;
    });
  }

  void machine() {
    const auto memory = [&](const char* name, const char* help, auto field) {
      of_nodes(name, "gauge", help, "node_exporter", [&](const BoardNode& node) { return node.sample->memory.*field; });
    };
    memory("node_memory_MemTotal_bytes", "Memory information field MemTotal_bytes.", &MemorySample::total);
    memory("node_memory_MemAvailable_bytes", "Memory information field MemAvailable_bytes.", &MemorySample::available);
    memory("node_memory_SwapTotal_bytes", "Memory information field SwapTotal_bytes.", &MemorySample::swap_total);
    memory("node_memory_SwapFree_bytes", "Memory information field SwapFree_bytes.", &MemorySample::swap_free);
    const auto seconds = [](const Total& us) {
      return us ? std::optional(static_cast<double>(*us) / 1e6) : std::nullopt;
    };
    of_nodes("node_pressure_memory_waiting_seconds_total", "counter", "Time that processes waited for memory.",
             "node_exporter", [&](const BoardNode& node) { return seconds(node.sample->memory.pressure_some_us); });
    of_nodes("node_pressure_memory_stalled_seconds_total", "counter", "Time that no process made progress for memory.",
             "node_exporter", [&](const BoardNode& node) { return seconds(node.sample->memory.pressure_full_us); });
    of_nodes("node_load1", "gauge", "1m load average.", "node_exporter",
             [](const BoardNode& node) { return node.sample->cpu.load; });
    of_interfaces("node_network_receive_bytes_total", "counter", "Network device statistic receive_bytes.",
                  [](const RailSample& rail) { return rail.rx_bytes; });
    of_interfaces("node_network_transmit_bytes_total", "counter", "Network device statistic transmit_bytes.",
                  [](const RailSample& rail) { return rail.tx_bytes; });
    of_interfaces("node_network_receive_errs_total", "counter", "Network device statistic receive_errs.",
                  [](const RailSample& rail) { return rail.rx_errors; });
    of_interfaces("node_network_receive_drop_total", "counter", "Network device statistic receive_drop.",
                  [](const RailSample& rail) { return rail.rx_dropped; });
    of_interfaces("node_network_transmit_drop_total", "counter", "Network device statistic transmit_drop.",
                  [](const RailSample& rail) { return rail.tx_dropped; });
    of_ports("node_infiniband_port_data_received_bytes_total", "counter", "Number of data octets received.",
             [](const RailSample& rail) { return rail.rdma_rx_bytes; });
    of_ports("node_infiniband_port_data_transmitted_bytes_total", "counter", "Number of data octets transmitted.",
             [](const RailSample& rail) { return rail.rdma_tx_bytes; });
    of_ports("node_infiniband_rate_bytes_per_second", "gauge", "Maximum signal transfer rate.",
             [](const RailSample& rail) {
               return rail.rdma_rate ? std::optional(rail.rdma_rate->value / 8) : std::nullopt;
             });
    of_ports("node_infiniband_state_id", "gauge", "State of the port (1: down, 2: init, 3: armed, 4: active).",
             [](const RailSample& rail) { return rail.rdma_state ? port_state(*rail.rdma_state) : std::nullopt; });
    of_ports("node_infiniband_physical_state_id", "gauge", "Physical state of the port (3: disabled, 5: link up).",
             [](const RailSample& rail) { return rail.rdma_physical_state; });
    for (const PortSeries& series : kPortSeries) {
      of_ports(series.name, "counter", series.help, [&](const RailSample& rail) { return rail.*series.value; });
    }
    writer_.family("node_filesystem_avail_bytes", "gauge", "Filesystem space available to non-root users in bytes.");
    each([&](const BoardNode& node) {
      if (exports(node, "node_exporter")) return;
      put({{"hostname", node.name}, {"mountpoint", "/"}}, node.sample->disk_free);
    });
    const auto of_disks = [&](const char* name, const char* help, auto field) {
      writer_.family(name, "counter", help);
      each([&](const BoardNode& node) {
        if (exports(node, "node_exporter")) return;
        for (const DiskSample& disk : node.sample->disks) {
          put({{"hostname", node.name}, {"device", disk.name}}, std::optional(disk.*field));
        }
      });
    };
    of_disks("node_disk_read_bytes_total", "The total number of bytes read successfully.", &DiskSample::read_bytes);
    of_disks("node_disk_written_bytes_total", "The total number of bytes written successfully.",
             &DiskSample::written_bytes);
    of_nodes("node_netstat_Tcp_RetransSegs", "counter", "Statistic TcpRetransSegs.", "node_exporter",
             [](const BoardNode& node) { return node.sample->tcp_retransmits; });
    writer_.family("node_hwmon_temp_celsius", "gauge", "Hardware monitor for temperature (input).");
    of_sensors(&SensorSample::celsius, "node_exporter");
  }

  const Board& board_;
  const Exposed exposed_;
  MetricsWriter writer_;
};

}  // namespace

std::string exposition(const Board& board, Exposed exposed) { return Exposition(board, exposed).text(); }

}  // namespace yoke::watch
