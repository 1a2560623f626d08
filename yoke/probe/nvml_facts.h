// What NVIDIA's management library tells: one of the probe's sources. As data, so that it can be asked of the library,
// written into a capture (nvml.json; tests/fixtures/README.md lists the fields) and read back. Every field may be
// missing: a GB10 answers "not supported" to many questions, and most machines have no NVML at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"

namespace yoke::probe {

struct NvmlProcess {
  int pid = 0;
  std::optional<Bytes> memory;
  friend bool operator==(const NvmlProcess&, const NvmlProcess&) = default;
};

struct NvmlGpu {
  int index = 0;
  std::optional<std::string> name;
  std::optional<std::string> uuid;
  std::optional<std::string> compute_capability;
  std::optional<std::string> pci_bus_id;  // "0000000F:01:00.0"
  std::optional<std::string> vbios_version;
  std::optional<bool> persistence_mode;
  std::optional<int> pcie_generation;
  std::optional<int> pcie_width;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_free;
  std::optional<int> clock_graphics_mhz;
  std::optional<int> clock_graphics_max_mhz;
  std::optional<int> clock_memory_max_mhz;
  std::vector<std::string> clock_limits;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> power_limit_default_w;
  std::optional<int> temperature_c;
  std::optional<int> utilization_percent;
  std::optional<int> nvlink_links;
  std::optional<int> nvlink_links_active;
  std::optional<std::int64_t> nvlink_errors;         // CRC errors and replays of all links
  std::optional<std::int64_t> nvlink_errors_rising;  // of these, what came while NVML was asked
  std::optional<std::int64_t> nvlink_recoveries;
  std::optional<std::string> fabric_state;
  std::optional<std::int64_t> ecc_uncorrected;
  std::optional<std::int64_t> ecc_uncorrected_total;
  std::optional<bool> row_remap_pending;
  std::optional<bool> row_remap_failed;
  std::optional<std::string> cpu_affinity;
  std::optional<int> numa_affinity;
  std::vector<NvmlProcess> processes;
  friend bool operator==(const NvmlGpu&, const NvmlGpu&) = default;
};

// A row for each GPU ("GPU0"), and where nvidia-smi made it, for each NIC; the columns are the GPUs, then the NICs.
struct NvmlMatrix {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  friend bool operator==(const NvmlMatrix&, const NvmlMatrix&) = default;
};

struct NvmlTopology {
  std::vector<std::string> nics;
  NvmlMatrix matrix;
  friend bool operator==(const NvmlTopology&, const NvmlTopology&) = default;
};

struct NvmlFacts {
  std::optional<std::string> driver_version;
  std::optional<std::string> cuda_version;
  std::optional<std::string> failure;  // why NVML, although there, shows nothing
  std::vector<NvmlGpu> gpus;
  std::optional<NvmlTopology> topology;
  friend bool operator==(const NvmlFacts&, const NvmlFacts&) = default;
};

// Asks libnvidia-ml.so.1. Without that library: no GPUs. Does not throw: a driver that is broken is a fact too.
NvmlFacts read_nvml();
Document to_json(const NvmlFacts& facts);
void from_json(const Document& document, NvmlFacts& facts);

}  // namespace yoke::probe
