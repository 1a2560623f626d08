#include "yoke/link/cabled_rails.h"

#include "yoke/spec/address_holder.h"
#include "yoke/spec/fabric.h"

namespace yoke::link {

std::vector<CabledRail> cabled_rails(const spec::Machine& machine) {
  std::vector<CabledRail> rails;
  for (const spec::NetworkInterface* interface : spec::fabric_interfaces(machine)) {
    const spec::RdmaDevice* device = spec::find_rdma_device(machine, interface->rdma_device.value_or(""));
    if (!device || !interface->up || !interface->carrier || interface->master) continue;
    if (&spec::address_holder(machine, *interface, device->gids) != interface) continue;
    rails.push_back({interface->name, interface->port.value_or(0), interface->rail.value_or("A")});
  }
  return rails;
}

}  // namespace yoke::link
