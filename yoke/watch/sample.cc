#include "yoke/watch/sample.h"

#include "yoke/base/fields.h"

namespace yoke::watch {

template <class Visitor>
void visit_fields(Visitor& visit, CpuSample& cpu) {
  visit.required("cores", cpu.cores);
  visit.required("busy", cpu.busy);
  visit.required("total", cpu.total);
  visit.optional("load", cpu.load);
}

template <class Visitor>
void visit_fields(Visitor& visit, MemorySample& memory) {
  visit.optional("total", memory.total);
  visit.optional("available", memory.available);
  visit.optional("swap_total", memory.swap_total);
  visit.optional("swap_free", memory.swap_free);
  visit.optional("pressure_some_us", memory.pressure_some_us);
  visit.optional("pressure_full_us", memory.pressure_full_us);
}

template <class Visitor>
void visit_fields(Visitor& visit, DiskSample& disk) {
  visit.required("name", disk.name);
  visit.required("read_bytes", disk.read_bytes);
  visit.required("written_bytes", disk.written_bytes);
}

template <class Visitor>
void visit_fields(Visitor& visit, SensorSample& sensor) {
  visit.required("chip", sensor.chip);
  visit.required("name", sensor.name);
  visit.optional("celsius", sensor.celsius);
  visit.optional("watts", sensor.watts);
}

template <class Visitor>
void visit_fields(Visitor& visit, RailSample& rail) {
  visit.required("interface", rail.interface);
  visit.optional("rail", rail.rail);
  visit.optional("port", rail.port);
  visit.required("up", rail.up);
  visit.required("carrier", rail.carrier);
  visit.optional("rx_bytes", rail.rx_bytes);
  visit.optional("tx_bytes", rail.tx_bytes);
  visit.optional("rx_errors", rail.rx_errors);
  visit.optional("tx_errors", rail.tx_errors);
  visit.optional("rx_dropped", rail.rx_dropped);
  visit.optional("tx_dropped", rail.tx_dropped);
  visit.optional("pause_received", rail.pause_received);
  visit.optional("pause_sent", rail.pause_sent);
  visit.optional("discards_received", rail.discards_received);
  visit.optional("rdma_device", rail.rdma_device);
  visit.optional("rdma_state", rail.rdma_state);
  visit.optional("rdma_rate", rail.rdma_rate);
  visit.optional("rdma_rx_bytes", rail.rdma_rx_bytes);
  visit.optional("rdma_tx_bytes", rail.rdma_tx_bytes);
  visit.optional("rdma_errors", rail.rdma_errors);
  visit.optional("rdma_discards", rail.rdma_discards);
  visit.optional("rdma_retransmits", rail.rdma_retransmits);
  visit.optional("link_downed", rail.link_downed);
  visit.optional("rdma_physical_state", rail.rdma_physical_state);
  visit.optional("receive_errors", rail.receive_errors);
  visit.optional("receive_discards", rail.receive_discards);
  visit.optional("link_recoveries", rail.link_recoveries);
  visit.optional("transmit_waits", rail.transmit_waits);
  visit.optional("out_of_sequence", rail.out_of_sequence);
  visit.optional("sequence_errors", rail.sequence_errors);
  visit.optional("ack_timeouts", rail.ack_timeouts);
  visit.optional("duplicate_requests", rail.duplicate_requests);
  visit.optional("implied_naks", rail.implied_naks);
  visit.optional("pcie_width", rail.pcie_width);
  visit.optional("pcie_width_max", rail.pcie_width_max);
}

template <class Visitor>
void visit_fields(Visitor& visit, GpuProcessSample& process) {
  visit.required("pid", process.pid);
  visit.optional("user", process.user);
  visit.optional("command", process.command);
  visit.optional("memory", process.memory);
}

template <class Visitor>
void visit_fields(Visitor& visit, GpuSample& gpu) {
  visit.required("index", gpu.index);
  visit.optional("name", gpu.name);
  visit.optional("uuid", gpu.uuid);
  visit.optional("lost", gpu.lost);
  visit.optional("utilization_percent", gpu.utilization_percent);
  visit.optional("memory_utilization_percent", gpu.memory_utilization_percent);
  visit.optional("sm_clock_mhz", gpu.sm_clock_mhz);
  visit.optional("sm_clock_max_mhz", gpu.sm_clock_max_mhz);
  visit.optional("memory_clock_mhz", gpu.memory_clock_mhz);
  visit.optional("temperature_c", gpu.temperature_c);
  visit.optional("power_w", gpu.power_w);
  visit.optional("power_limit_w", gpu.power_limit_w);
  visit.optional("energy_mj", gpu.energy_mj);
  visit.optional("clock_limits", gpu.clock_limits);
  visit.optional("power_violation_ns", gpu.power_violation_ns);
  visit.optional("thermal_violation_ns", gpu.thermal_violation_ns);
  visit.optional("memory_total", gpu.memory_total);
  visit.optional("memory_used", gpu.memory_used);
  visit.optional("pcie_width", gpu.pcie_width);
  visit.optional("pcie_replays", gpu.pcie_replays);
  visit.optional("ecc_corrected", gpu.ecc_corrected);
  visit.optional("ecc_uncorrected", gpu.ecc_uncorrected);
  visit.optional("nvlink_rx_bytes", gpu.nvlink_rx_bytes);
  visit.optional("nvlink_tx_bytes", gpu.nvlink_tx_bytes);
  visit.optional("engine_active", gpu.engine_active);
  visit.optional("tensor_active", gpu.tensor_active);
  visit.optional("memory_active", gpu.memory_active);
  visit.optional("xid_count", gpu.xid_count);
  visit.optional("xid_last", gpu.xid_last);
  visit.optional("processes", gpu.processes);
}

template <class Visitor>
void visit_fields(Visitor& visit, EngineSample& engine) {
  visit.required("kind", engine.kind);
  visit.required("port", engine.port);
  visit.optional("model", engine.model);
  visit.optional("running", engine.running);
  visit.optional("waiting", engine.waiting);
  visit.optional("cache_usage", engine.cache_usage);
  visit.optional("prompt_tokens", engine.prompt_tokens);
  visit.optional("generated_tokens", engine.generated_tokens);
  visit.optional("preemptions", engine.preemptions);
  visit.optional("tokens_per_second", engine.tokens_per_second);
  visit.optional("canary_up", engine.canary_up);
  visit.optional("canary_seconds", engine.canary_seconds);
}

template <class Visitor>
void visit_fields(Visitor& visit, JobSample& job) {
  visit.required("name", job.name);
  visit.required("since", job.since);
  visit.required("ranks", job.ranks);
  visit.required("command", job.command);
}

template <class Visitor>
void visit_fields(Visitor& visit, Sample& sample) {
  visit.required("time", sample.time);
  visit.required("uptime", sample.uptime);
  visit.required("cpu", sample.cpu);
  visit.required("memory", sample.memory);
  visit.optional("disks", sample.disks);
  visit.optional("disk_free", sample.disk_free);
  visit.optional("sensors", sample.sensors);
  visit.optional("rails", sample.rails);
  visit.optional("tcp_retransmits", sample.tcp_retransmits);
  visit.optional("gpus", sample.gpus);
  visit.optional("gpu_problem", sample.gpu_problem);
  visit.optional("engines", sample.engines);
  visit.optional("jobs", sample.jobs);
  visit.optional("exporters", sample.exporters);
}

Document to_json(const Sample& sample) { return write_fields(sample); }
void from_json(const Document& document, Sample& sample) { read_fields(document, sample); }

}  // namespace yoke::watch
