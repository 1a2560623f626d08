#include "yoke/spec/machine.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "yoke/base/fields.h"
#include "yoke/base/ip_fields.h"
#include "yoke/spec/machine_fields.h"

namespace yoke {

constexpr auto enum_names(GidType) {
  return std::array{std::pair{"RoCE v1", GidType::kRoceV1}, std::pair{"RoCE v2", GidType::kRoceV2}};
}

constexpr auto enum_names(InterfaceKind) {
  return std::array{std::pair{"loopback", InterfaceKind::kLoopback}, std::pair{"ethernet", InterfaceKind::kEthernet},
                    std::pair{"wifi", InterfaceKind::kWifi},         std::pair{"bridge", InterfaceKind::kBridge},
                    std::pair{"bond", InterfaceKind::kBond},         std::pair{"virtual", InterfaceKind::kVirtual},
                    std::pair{"other", InterfaceKind::kOther}};
}

template <class Visitor>
void visit_fields(Visitor& visit, Cpu& cpu) {
  visit.required("model", cpu.model);
  visit.optional("cores", cpu.cores);
  visit.optional("sockets", cpu.sockets);
  visit.optional("numa_nodes", cpu.numa_nodes);
}

template <class Visitor>
void visit_fields(Visitor& visit, Memory& memory) {
  visit.optional("total", memory.total);
  visit.optional("available", memory.available);
  visit.optional("limit", memory.limit);
  visit.required("unified", memory.unified);
  visit.optional("cached", memory.cached);
  visit.optional("huge_pages", memory.huge_pages);
  visit.optional("swap_total", memory.swap_total);
  visit.optional("swap_free", memory.swap_free);
  visit.optional("cma_total", memory.cma_total);
  visit.optional("cma_free", memory.cma_free);
}

template <class Visitor>
void visit_fields(Visitor& visit, PcieLink& link) {
  visit.required("speed_gt_per_second", link.speed_gt_per_second);
  visit.required("width", link.width);
  visit.required("speed_gt_per_second_max", link.speed_gt_per_second_max);
  visit.required("width_max", link.width_max);
}

template <class Visitor>
void visit_fields(Visitor& visit, GpuProcess& process) {
  visit.required("pid", process.pid);
  visit.optional("memory", process.memory);
}

template <class Visitor>
void visit_fields(Visitor& visit, Gpu& gpu) {
  visit.optional("index", gpu.index);
  visit.required("name", gpu.name);
  visit.optional("uuid", gpu.uuid);
  visit.optional("pci_address", gpu.pci_address);
  visit.optional("compute_capability", gpu.compute_capability);
  visit.optional("memory", gpu.memory);
  visit.optional("memory_free", gpu.memory_free);
  visit.optional("pcie", gpu.pcie);
  visit.optional("numa_node", gpu.numa_node);
  visit.optional("cpu_affinity", gpu.cpu_affinity);
  visit.optional("vbios", gpu.vbios);
  visit.optional("persistence", gpu.persistence);
  visit.optional("clock_mhz", gpu.clock_mhz);
  visit.optional("clock_mhz_max", gpu.clock_mhz_max);
  visit.optional("power_w", gpu.power_w);
  visit.optional("power_limit_w", gpu.power_limit_w);
  visit.optional("temperature_c", gpu.temperature_c);
  visit.optional("utilization_percent", gpu.utilization_percent);
  visit.optional("clock_limits", gpu.clock_limits);
  visit.optional("nvlinks", gpu.nvlinks);
  visit.optional("nvlinks_active", gpu.nvlinks_active);
  visit.optional("processes", gpu.processes);
}

template <class Visitor>
void visit_fields(Visitor& visit, DeviceTopology& topology) {
  visit.required("devices", topology.devices);
  visit.required("paths", topology.paths);
}

template <class Visitor>
void visit_fields(Visitor& visit, NetworkInterface& interface) {
  visit.required("name", interface.name);
  visit.required("index", interface.index);
  visit.required("kind", interface.kind);
  visit.required("mac", interface.mac);
  visit.required("mtu", interface.mtu);
  visit.required("up", interface.up);
  visit.required("carrier", interface.carrier);
  visit.optional("addresses", interface.addresses);
  visit.optional("ipv6_addresses", interface.ipv6_addresses);
  visit.optional("ipv6_disabled", interface.ipv6_disabled);
  visit.optional("master", interface.master);
  visit.optional("speed", interface.speed);
  visit.optional("driver", interface.driver);
  visit.optional("pci_address", interface.pci_address);
  visit.optional("pcie", interface.pcie);
  visit.optional("numa_node", interface.numa_node);
  visit.optional("rdma_device", interface.rdma_device);
  visit.optional("port", interface.port);
  visit.optional("half", interface.half);
}

template <class Visitor>
void visit_fields(Visitor& visit, Route& route) {
  visit.optional("destination", route.destination);
  visit.optional("gateway", route.gateway);
  visit.required("interface", route.interface);
  visit.optional("source", route.source);
  visit.optional("metric", route.metric);
  visit.required("down", route.down);
}

template <class Visitor>
void visit_fields(Visitor& visit, GidEntry& gid) {
  visit.required("index", gid.index);
  visit.required("type", gid.type);
  visit.required("address", gid.address);
  visit.optional("ipv4", gid.ipv4);
  visit.required("interface", gid.interface);
}

template <class Visitor>
void visit_fields(Visitor& visit, RdmaDevice& device) {
  visit.required("name", device.name);
  visit.required("state", device.state);
  visit.optional("physical_state", device.physical_state);
  visit.optional("link_layer", device.link_layer);
  visit.optional("rate", device.rate);
  visit.optional("interface", device.interface);
  visit.optional("pci_address", device.pci_address);
  visit.optional("firmware", device.firmware);
  visit.optional("board", device.board);
  visit.optional("adapter", device.adapter);
  visit.optional("gids", device.gids);
  visit.optional("gid_index", device.gid_index);
}

template <class Visitor>
void visit_fields(Visitor& visit, DgxRelease& release) {
  visit.optional("name", release.name);
  visit.optional("platform", release.platform);
  visit.optional("version", release.version);
  visit.optional("update", release.update);
  visit.required("hot_plug", release.hot_plug);
}

template <class Visitor>
void visit_fields(Visitor& visit, Containers& containers) {
  visit.optional("runtimes", containers.runtimes);
  visit.required("gpu", containers.gpu);
  visit.optional("inside", containers.inside);
  visit.optional("rdma_access", containers.rdma_access);
}

template <class Visitor>
void visit_fields(Visitor& visit, TimeState& time) {
  visit.optional("synchronized", time.synchronized);
  visit.optional("error", time.error);
  visit.optional("daemons", time.daemons);
}

template <class Visitor>
void visit_fields(Visitor& visit, Machine& machine) {
  visit.required("hostname", machine.hostname);
  visit.required("architecture", machine.architecture);
  visit.required("os", machine.os);
  visit.required("kernel", machine.kernel);
  visit.optional("vendor", machine.vendor);
  visit.optional("product", machine.product);
  visit.optional("bios", machine.bios);
  visit.optional("dgx", machine.dgx);
  visit.optional("driver", machine.driver);
  visit.optional("cuda", machine.cuda);
  visit.optional("cuda_toolkit", machine.cuda_toolkit);
  visit.optional("gpu_problem", machine.gpu_problem);
  visit.required("cpu", machine.cpu);
  visit.required("memory", machine.memory);
  visit.optional("gpus", machine.gpus);
  visit.optional("topology", machine.topology);
  visit.optional("interfaces", machine.interfaces);
  visit.optional("routes", machine.routes);
  visit.optional("rdma_devices", machine.rdma_devices);
  visit.optional("nccl", machine.nccl);
  visit.optional("settings", machine.settings);
  visit.required("containers", machine.containers);
  visit.optional("memlock", machine.memlock);
  visit.required("memlock_unlimited", machine.memlock_unlimited);
  visit.optional("ip_forward", machine.ip_forward);
  visit.optional("firewall", machine.firewall);
  visit.required("time", machine.time);
}

Document to_json(const Machine& machine) { return write_fields(machine); }
Machine machine_from_json(const Document& document) { return read_fields<Machine>(document); }

const NetworkInterface* find_interface(const Machine& machine, std::string_view name) {
  for (const NetworkInterface& interface : machine.interfaces) {
    if (interface.name == name) return &interface;
  }
  return nullptr;
}

const RdmaDevice* find_rdma_device(const Machine& machine, std::string_view name) {
  for (const RdmaDevice& device : machine.rdma_devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

std::vector<const NetworkInterface*> fast_interfaces(const Machine& machine) {
  std::vector<const NetworkInterface*> fast;
  for (const NetworkInterface& interface : machine.interfaces) {
    if (interface.port && interface.half) fast.push_back(&interface);
  }
  std::sort(fast.begin(), fast.end(), [](const NetworkInterface* a, const NetworkInterface* b) {
    return std::tie(*a->port, *a->half) < std::tie(*b->port, *b->half);
  });
  return fast;
}

}  // namespace yoke
