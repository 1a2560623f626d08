#include "yoke/spec/machine.h"

#include <array>

#include "yoke/base/fields.h"

namespace yoke {

constexpr auto enum_names(GidType) {
  return std::array{std::pair{"RoCE v1", GidType::kRoceV1}, std::pair{"RoCE v2", GidType::kRoceV2}};
}

template <class Visitor>
void visit_fields(Visitor& visit, Cpu& cpu) {
  visit.required("model", cpu.model);
  visit.required("cores", cpu.cores);
  visit.required("numa_nodes", cpu.numa_nodes);
}

template <class Visitor>
void visit_fields(Visitor& visit, Memory& memory) {
  visit.required("total", memory.total);
  visit.required("available", memory.available);
  visit.optional("limit", memory.limit);
  visit.required("unified", memory.unified);
}

template <class Visitor>
void visit_fields(Visitor& visit, PcieLink& link) {
  visit.required("speed_gt_per_second", link.speed_gt_per_second);
  visit.required("width", link.width);
  visit.required("speed_gt_per_second_max", link.speed_gt_per_second_max);
  visit.required("width_max", link.width_max);
}

template <class Visitor>
void visit_fields(Visitor& visit, Gpu& gpu) {
  visit.required("name", gpu.name);
  visit.optional("pci_address", gpu.pci_address);
  visit.optional("compute_capability", gpu.compute_capability);
  visit.optional("memory", gpu.memory);
}

template <class Visitor>
void visit_fields(Visitor& visit, NetworkInterface& interface) {
  visit.required("name", interface.name);
  visit.required("mac", interface.mac);
  visit.required("mtu", interface.mtu);
  visit.required("up", interface.up);
  visit.required("carrier", interface.carrier);
  visit.optional("addresses", interface.addresses);
  visit.optional("speed", interface.speed);
  visit.optional("pci_address", interface.pci_address);
  visit.optional("pcie", interface.pcie);
}

template <class Visitor>
void visit_fields(Visitor& visit, Gid& gid) {
  visit.required("index", gid.index);
  visit.required("type", gid.type);
  visit.required("address", gid.address);
  visit.required("interface", gid.interface);
}

template <class Visitor>
void visit_fields(Visitor& visit, RdmaDevice& device) {
  visit.required("name", device.name);
  visit.required("state", device.state);
  visit.optional("rate", device.rate);
  visit.optional("pci_address", device.pci_address);
  visit.optional("firmware", device.firmware);
  visit.optional("gids", device.gids);
}

template <class Visitor>
void visit_fields(Visitor& visit, Machine& machine) {
  visit.required("hostname", machine.hostname);
  visit.required("architecture", machine.architecture);
  visit.required("os", machine.os);
  visit.required("kernel", machine.kernel);
  visit.optional("product", machine.product);
  visit.optional("driver", machine.driver);
  visit.required("cpu", machine.cpu);
  visit.required("memory", machine.memory);
  visit.optional("gpus", machine.gpus);
  visit.optional("interfaces", machine.interfaces);
  visit.optional("rdma_devices", machine.rdma_devices);
}

Document to_json(const Machine& machine) { return to_document(machine); }
Machine machine_from_json(const Document& document) { return from_document<Machine>(document); }

}  // namespace yoke
