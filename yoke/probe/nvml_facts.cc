#include "yoke/probe/nvml_facts.h"

#include "yoke/base/fields.h"

namespace yoke {

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
  visit.optional("temperature_c", gpu.temperature_c);
  visit.optional("utilization_percent", gpu.utilization_percent);
  visit.optional("nvlink_links", gpu.nvlink_links);
  visit.optional("nvlink_links_active", gpu.nvlink_links_active);
  visit.optional("cpu_affinity", gpu.cpu_affinity);
  visit.optional("numa_affinity", gpu.numa_affinity);
  visit.optional("processes", gpu.processes);
}

void read_field(const Document& document, NvmlMatrix& matrix) {
  if (document.kind != Document::Kind::kMap) refuse_field(document, "a map with a row for each device");
  matrix.rows.clear();
  for (const auto& [name, row] : document.fields) {
    matrix.rows.emplace_back(name, from_document<std::vector<std::string>>(row));
  }
}

void write_field(Document& document, const NvmlMatrix& matrix) {
  document = Document::map();
  for (const auto& [name, row] : matrix.rows) document.add(name, to_document(row));
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

Document to_json(const NvmlFacts& facts) { return to_document(facts); }
NvmlFacts nvml_from_json(const Document& document) { return from_document<NvmlFacts>(document); }

}  // namespace yoke
