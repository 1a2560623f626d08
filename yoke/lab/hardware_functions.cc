#include "yoke/lab/hardware_functions.h"

#include <filesystem>
#include <set>

#include "yoke/base/text.h"

namespace yoke::lab {
namespace {

// "/sys/devices/pci0000:00/0000:00:00.0/…" -> "/sys/devices/pci0000:00/0000:00:00.0", the port that a device is behind.
std::string root_port_of(const std::string& pci_folder) {
  const std::vector<std::string> parts = split(pci_folder, '/');  // the first is empty
  std::string port;
  for (std::size_t i = 1; i < parts.size() && i < 5; ++i) port += "/" + parts[i];
  return port;
}

}  // namespace

std::vector<RdmaFunction> find_rdma_functions(const FileTree& tree) {
  std::vector<RdmaFunction> functions;
  for (const std::string& device : tree.list("/sys/class/infiniband")) {
    const auto rdma_folder = tree.resolve("/sys/class/infiniband/" + device);
    if (!rdma_folder) continue;
    const std::filesystem::path pci_folder = std::filesystem::path(*rdma_folder).parent_path().parent_path();
    const std::vector<std::string> interfaces = tree.list((pci_folder / "net").native());
    if (interfaces.empty()) continue;
    functions.push_back({.device = device,
                         .interface = interfaces.front(),
                         .pci_address = pci_folder.filename(),
                         .pci_folder = pci_folder});
  }
  return functions;
}

std::map<std::string, std::string> find_pci_neighbours(const FileTree& tree,
                                                       const std::vector<RdmaFunction>& functions) {
  std::set<std::string> ports;
  for (const RdmaFunction& function : functions) ports.insert(root_port_of(function.pci_folder));
  std::map<std::string, std::string> neighbours;
  if (ports.empty()) return neighbours;
  for (const std::string& address : tree.list("/sys/bus/pci/devices")) {
    const auto folder = tree.resolve("/sys/bus/pci/devices/" + address);
    if (folder && ports.contains(root_port_of(*folder))) neighbours.emplace(address, *folder);
  }
  return neighbours;
}

}  // namespace yoke::lab
