#include "yoke/spec/fabric.h"

#include <algorithm>
#include <map>
#include <set>

namespace yoke {
namespace {

bool is_gpu(const std::string& device) { return device.starts_with("GPU"); }

// The RDMA devices below one PCIe switch with a GPU; none where most GPUs have no such device: then the machine is not
// made so, as a Spark or a workstation.
std::set<std::string> devices_beside_gpus(const DeviceTopology& topology) {
  std::set<std::string> beside;
  std::size_t gpus = 0, served = 0;
  for (std::size_t i = 0; i < topology.devices.size() && i < topology.paths.size(); ++i) {
    if (!is_gpu(topology.devices[i])) continue;
    bool is_served = false;
    for (std::size_t j = 0; j < topology.devices.size() && j < topology.paths[i].size(); ++j) {
      const std::string& path = topology.paths[i][j];
      if (is_gpu(topology.devices[j]) || (path != "PIX" && path != "PXB")) continue;
      beside.insert(topology.devices[j]);
      is_served = true;
    }
    ++gpus;
    if (is_served) ++served;
  }
  return 2 * served > gpus ? beside : std::set<std::string>{};
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

}  // namespace

std::vector<const NetworkInterface*> fabric_among(const Machine& machine, std::vector<const NetworkInterface*> fast) {
  const auto beside = machine.topology ? devices_beside_gpus(*machine.topology) : std::set<std::string>{};
  if (!beside.empty()) {
    std::erase_if(fast, [&](const auto* interface) { return !beside.contains(interface->rdma_device.value_or("")); });
  }
  const std::string board = most_common_board(machine, fast);
  std::erase_if(fast, [&](const auto* interface) { return board_of(machine, *interface) != board; });
  return fast;
}

std::vector<const NetworkInterface*> fabric_interfaces(const Machine& machine) {
  return fabric_among(machine, fast_interfaces(machine));
}

}  // namespace yoke
