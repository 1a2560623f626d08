#include "yoke/spec/fabric.h"

#include <algorithm>
#include <map>
#include <set>

#include "yoke/spec/hardware.h"

namespace yoke::spec {
namespace {

bool is_gpu(const std::string& device) { return device.starts_with("GPU"); }

// The RDMA devices below one PCIe switch with a GPU; none where most GPUs have no such device: then the machine is not
// made so, as a Spark or a workstation.
std::set<std::string> devices_beside_gpus(const DeviceTopology& topology) {
  std::set<std::string> baseline;
  std::size_t gpus = 0, served = 0;
  for (std::size_t i = 0; i < topology.devices.size() && i < topology.paths.size(); ++i) {
    if (!is_gpu(topology.devices[i])) continue;
    bool is_served = false;
    for (std::size_t j = 0; j < topology.devices.size() && j < topology.paths[i].size(); ++j) {
      const std::string& path = topology.paths[i][j];
      if (is_gpu(topology.devices[j]) || (path != "PIX" && path != "PXB")) continue;
      baseline.insert(topology.devices[j]);
      is_served = true;
    }
    ++gpus;
    if (is_served) ++served;
  }
  return 2 * served > gpus ? baseline : std::set<std::string>{};
}

std::string board_of(const Machine& machine, const NetworkInterface& interface) {
  const RdmaDevice* device = find_rdma_device(machine, interface.rdma_device.value_or(""));
  return device ? device->board.value_or("") : "";
}

// How much speaks for a board. Adapters are counted, not ports, of which one for storage may have two; of equally many
// the one with the better PCIe link counts.
struct BoardWeight {
  std::set<std::string> adapters;
  double pcie_best = 0;  // GT/s of all lanes
};

std::string most_common_board(const Machine& machine, const std::vector<const NetworkInterface*>& fast) {
  std::map<std::string, BoardWeight> boards;
  for (const NetworkInterface* interface : fast) {
    BoardWeight& weight = boards[board_of(machine, *interface)];
    const RdmaDevice* device = find_rdma_device(machine, interface->rdma_device.value_or(""));
    weight.adapters.insert(device && device->adapter ? *device->adapter : interface->name);
    const PcieLink link = interface->pcie.value_or(PcieLink{});
    weight.pcie_best = std::max(weight.pcie_best, link.speed_gt_per_second_max * link.width_max);
  }
  const auto rank = [](const auto& board) { return std::pair(board.second.adapters.size(), board.second.pcie_best); };
  const auto most =
      std::max_element(boards.begin(), boards.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return most == boards.end() ? "" : most->first;
}

// Where fewer NICs are beside a GPU than the machine is made with GPUs: those that look the same.
void add_devices_without_their_gpu(const Machine& machine, const std::vector<const NetworkInterface*>& fast,
                                   std::set<std::string>& beside) {
  const auto wanted = std::ranges::find_if(hardware_catalogue(), [&](const Hardware& hardware) {
    return std::ranges::any_of(machine.gpus, [&](const Gpu& gpu) { return gpu.name.starts_with(hardware.gpu); });
  });
  if (wanted == hardware_catalogue().end() || static_cast<int>(beside.size()) >= wanted->gpus) return;
  const RdmaDevice* const like = find_rdma_device(machine, *beside.begin());
  if (!like || !like->board || !like->bridges) return;
  for (const NetworkInterface* interface : fast) {
    const RdmaDevice* device = find_rdma_device(machine, interface->rdma_device.value_or(""));
    const bool alike = device && device->board == like->board && device->bridges == like->bridges;
    if (alike && static_cast<int>(beside.size()) < wanted->gpus) beside.insert(device->name);
  }
}

}  // namespace

bool has_halves(const Machine& machine) {
  return std::ranges::any_of(machine.interfaces,
                             [](const NetworkInterface& one) { return one.rail && *one.rail != "A"; });
}

std::string rail_letter(const Machine& machine, const NetworkInterface& interface) {
  if (!interface.rail || !interface.port) return "";
  const bool has_letter = !has_halves(machine) && *interface.port >= 0 && *interface.port < 26;
  return has_letter ? std::string(1, static_cast<char>('A' + *interface.port)) : *interface.rail;
}

std::vector<const NetworkInterface*> fabric_among(const Machine& machine, std::vector<const NetworkInterface*> fast) {
  auto baseline = machine.topology ? devices_beside_gpus(*machine.topology) : std::set<std::string>{};
  if (!baseline.empty()) {
    add_devices_without_their_gpu(machine, fast, baseline);
    std::erase_if(fast, [&](const auto* interface) { return !baseline.contains(interface->rdma_device.value_or("")); });
  }
  const std::string board = most_common_board(machine, fast);
  std::erase_if(fast, [&](const auto* interface) { return board_of(machine, *interface) != board; });
  return fast;
}

std::vector<const NetworkInterface*> fabric_interfaces(const Machine& machine) {
  return fabric_among(machine, fast_interfaces(machine));
}

}  // namespace yoke::spec
