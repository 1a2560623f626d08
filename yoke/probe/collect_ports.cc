#include <algorithm>
#include <tuple>

#include "yoke/probe/collectors.h"
#include "yoke/probe/pci.h"
#include "yoke/spec/fabric.h"

namespace yoke::probe {
namespace {

// A function that is a port, or half of one.
struct PortFunction {
  spec::NetworkInterface* interface = nullptr;
  bool is_further = false;  // none of the fabric's
  std::string place, adapter, domain;

  auto order() const { return std::tie(is_further, place, adapter, domain); }
  auto port() const { return std::tie(is_further, place, adapter); }
};

// Virtual functions are no ports of their own.
std::vector<PortFunction> find_functions(const FileTree& files, spec::Machine& machine) {
  std::vector<PortFunction> functions;
  std::vector<const spec::NetworkInterface*> interfaces;
  for (spec::NetworkInterface& interface : machine.interfaces) {
    const spec::RdmaDevice* device =
        interface.rdma_device ? spec::find_rdma_device(machine, *interface.rdma_device) : nullptr;
    if (!device || !device->pci_address) continue;
    const PciDevice pci{.address = *device->pci_address};
    if (files.exists("/sys/bus/pci/devices/" + pci.address + "/physfn")) continue;
    functions.push_back({.interface = &interface,
                         .place = pci.place(),
                         .adapter = device->adapter.value_or(""),
                         .domain = pci.domain()});
    interfaces.push_back(&interface);
  }
  const std::vector<const spec::NetworkInterface*> fabric = spec::fabric_among(machine, interfaces);
  for (PortFunction& function : functions) {
    function.is_further = std::find(fabric.begin(), fabric.end(), function.interface) == fabric.end();
  }
  return functions;
}

}  // namespace

// Functions at the same place of different PCI domains on one adapter are the rails of a port: a Spark's 0000:01:00.0
// and 0002:01:00.0. Never by the order of names, where a capital P comes before a small one. The fabric's ports come
// first: a NIC for storage beside them does not move their numbers.
void collect_ports(const Sources& sources, spec::Machine& machine) {
  std::vector<PortFunction> functions = find_functions(*sources.files, machine);
  std::sort(functions.begin(), functions.end(),
            [](const PortFunction& a, const PortFunction& b) { return a.order() < b.order(); });
  int port = -1;
  char rail = 'A';
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const bool same_port = i > 0 && functions[i].port() == functions[i - 1].port();
    rail = same_port ? static_cast<char>(rail + 1) : 'A';
    if (!same_port) ++port;
    functions[i].interface->port = port;
    functions[i].interface->rail = std::string(1, rail);
  }
}

}  // namespace yoke::probe
