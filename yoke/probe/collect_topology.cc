// How near GPUs and RDMA devices are to each other. Between GPUs NVML tells, as NVLink is not on the PCI bus; the rest
// follows from the places on the bus.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/pci.h"

namespace yoke::probe {
namespace {

struct Place {
  std::string name;
  std::string pci_address;
};

// What NVML says between two GPUs, by their names ("GPU0"); nothing where it says nothing.
std::optional<std::string> nvml_path(const NvmlFacts& nvml, std::size_t from, std::size_t to) {
  if (!nvml.topology) return std::nullopt;
  const std::string name = fmt::format("GPU{}", nvml.gpus[from].index);
  for (const auto& [row_name, row] : nvml.topology->matrix.rows) {
    if (row_name != name) continue;
    if (to >= row.size()) {
      throw Error(ErrorCode::kInvalid, fmt::format("NVML's topology has no column {} in the row of {}", to, name));
    }
    return row[to];
  }
  return std::nullopt;
}

}  // namespace

void collect_topology(const Sources& sources, spec::Machine& machine) {
  const NvmlFacts& nvml = sources.nvml;
  std::vector<Place> places;
  for (const spec::Gpu& gpu : machine.gpus) {
    if (gpu.index) places.push_back({fmt::format("GPU{}", *gpu.index), gpu.pci_address.value_or("")});
  }
  const std::size_t gpus = places.size();
  for (const spec::RdmaDevice& device : machine.rdma_devices)
    places.push_back({device.name, device.pci_address.value_or("")});
  if (gpus == 0 || places.size() < 2) return;
  const std::map<std::string, PciDevice> devices = read_pci_devices(*sources.files);
  const auto path = [&](std::size_t i, std::size_t j) -> std::string {
    if (i == j) return "X";
    if (i < gpus && j < gpus) {
      if (const auto reported = nvml_path(nvml, i, j)) return *reported;
    }
    const auto one = devices.find(places[i].pci_address);
    const auto other = devices.find(places[j].pci_address);
    return one == devices.end() || other == devices.end() ? "?" : pci_path(one->second, other->second);
  };
  spec::DeviceTopology topology;
  for (std::size_t i = 0; i < places.size(); ++i) {
    topology.devices.push_back(places[i].name);
    std::vector<std::string>& row = topology.paths.emplace_back();
    for (std::size_t j = 0; j < places.size(); ++j) row.push_back(path(i, j));
  }
  machine.topology = std::move(topology);
}

}  // namespace yoke::probe
