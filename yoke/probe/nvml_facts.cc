#include "yoke/probe/nvml_facts.h"

#include "yoke/base/fields.h"

namespace yoke::probe {

template <class Visitor>
void visit_fields(Visitor& visit, NvmlProcess& process) {
  visit.required("pid", process.pid);
  visit.optional("memory", process.memory);
}

template <class Visitor>
void visit_fields(Visitor& visit, NvmlGpu& gpu) {
  visit.required("index", gpu.index);
  visit.optional("name", gpu.name);
  visit.optional("uuid", gpu.uuid);
  visit.optional("compute_capability", gpu.compute_capability);
  visit.optional("pci_bus_id", gpu.pci_bus_id);
  visit.optional("vbios_version", gpu.vbios_version);
  visit.optional("persistence_mode", gpu.persistence_mode);
  visit.optional("pcie_generation", gpu.pcie_generation);
  visit.optional("pcie_width", gpu.pcie_width);
  visit.optional("memory_total", gpu.memory_total);
  visit.optional("memory_free", gpu.memory_free);
  visit.optional("clock_graphics_mhz", gpu.clock_graphics_mhz);
  visit.optional("clock_graphics_max_mhz", gpu.clock_graphics_max_mhz);
  visit.optional("clock_memory_max_mhz", gpu.clock_memory_max_mhz);
  visit.optional("clock_limits", gpu.clock_limits);
  visit.optional("power_w", gpu.power_w);
  visit.optional("power_limit_w", gpu.power_limit_w);
  visit.optional("power_limit_default_w", gpu.power_limit_default_w);
  visit.optional("temperature_c", gpu.temperature_c);
  visit.optional("utilization_percent", gpu.utilization_percent);
  visit.optional("nvlink_links", gpu.nvlink_links);
  visit.optional("nvlink_links_active", gpu.nvlink_links_active);
  visit.optional("nvlink_errors", gpu.nvlink_errors);
  visit.optional("nvlink_errors_rising", gpu.nvlink_errors_rising);
  visit.optional("nvlink_recoveries", gpu.nvlink_recoveries);
  visit.optional("fabric_state", gpu.fabric_state);
  visit.optional("ecc_uncorrected", gpu.ecc_uncorrected);
  visit.optional("ecc_uncorrected_total", gpu.ecc_uncorrected_total);
  visit.optional("row_remap_pending", gpu.row_remap_pending);
  visit.optional("row_remap_failed", gpu.row_remap_failed);
  visit.optional("cpu_affinity", gpu.cpu_affinity);
  visit.optional("numa_affinity", gpu.numa_affinity);
  visit.optional("processes", gpu.processes);
}

void from_json(const Document& document, NvmlMatrix& matrix) {
  if (document.kind != Document::Kind::kMap) refuse_field(document, "a map with a row for each device");
  matrix.rows.clear();
  for (const auto& [name, row] : document.fields) {
    matrix.rows.emplace_back(name, from_json<std::vector<std::string>>(row));
  }
}

Document to_json(const NvmlMatrix& matrix) {
  Document document = Document::map();
  for (const auto& [name, row] : matrix.rows) document.add(name, to_document(row));
  return document;
}

template <class Visitor>
void visit_fields(Visitor& visit, NvmlTopology& topology) {
  visit.optional("nics", topology.nics);
  visit.required("matrix", topology.matrix);
}

template <class Visitor>
void visit_fields(Visitor& visit, NvmlFacts& facts) {
  visit.optional("driver_version", facts.driver_version);
  visit.optional("cuda_version", facts.cuda_version);
  visit.optional("failure", facts.failure);
  visit.required("gpus", facts.gpus);
  visit.optional("topology", facts.topology);
}

Document to_json(const NvmlFacts& facts) { return write_fields(facts); }
void from_json(const Document& document, NvmlFacts& facts) { read_fields(document, facts); }

}  // namespace yoke::probe
