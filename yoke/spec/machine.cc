#include "yoke/spec/machine.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "yoke/base/fields.h"

namespace yoke::spec {

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
void visit_fields(Visitor& visit, NcclBuild& build) {
  visit.required("path", build.path);
  visit.optional("version", build.version);
  visit.optional("build_id", build.build_id);
  visit.optional("size", build.size);
  visit.optional("architectures", build.architectures);
  visit.optional("ptx", build.ptx);
}

template <class Visitor>
void visit_fields(Visitor& visit, NetworkSetting& setting) {
  visit.required("name", setting.name);
  visit.required("value", setting.value);
  visit.required("where", setting.where);
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
  visit.optional("power_limit_default_w", gpu.power_limit_default_w);
  visit.optional("temperature_c", gpu.temperature_c);
  visit.optional("utilization_percent", gpu.utilization_percent);
  visit.optional("clock_limits", gpu.clock_limits);
  visit.optional("nvlinks", gpu.nvlinks);
  visit.optional("nvlinks_active", gpu.nvlinks_active);
  visit.optional("nvlink_errors", gpu.nvlink_errors);
  visit.optional("nvlink_errors_rising", gpu.nvlink_errors_rising);
  visit.optional("nvlink_recoveries", gpu.nvlink_recoveries);
  visit.optional("fabric_state", gpu.fabric_state);
  visit.optional("ecc_uncorrected", gpu.ecc_uncorrected);
  visit.optional("ecc_uncorrected_total", gpu.ecc_uncorrected_total);
  visit.optional("row_remap_pending", gpu.row_remap_pending);
  visit.optional("row_remap_failed", gpu.row_remap_failed);
  visit.optional("iommu", gpu.iommu);
  visit.optional("processes", gpu.processes);
}

template <class Visitor>
void visit_fields(Visitor& visit, PortCounter& counter) {
  visit.required("name", counter.name);
  visit.required("value", counter.value);
}

template <class Visitor>
void visit_fields(Visitor& visit, KernelSetting& setting) {
  visit.required("name", setting.name);
  visit.required("value", setting.value);
}

template <class Visitor>
void visit_fields(Visitor& visit, FabricManager& manager) {
  visit.required("installed", manager.installed);
  visit.required("running", manager.running);
  visit.optional("version", manager.version);
}

template <class Visitor>
void visit_fields(Visitor& visit, XidLine& xid) {
  visit.required("number", xid.number);
  visit.required("pci_address", xid.pci_address);
  visit.required("line", xid.line);
  visit.optional("count", xid.count);
}

template <class Visitor>
void visit_fields(Visitor& visit, DeviceTopology& topology) {
  visit.required("devices", topology.devices);
  visit.required("paths", topology.paths);
}

template <class Visitor>
void visit_fields(Visitor& visit, CableModule& module) {
  visit.required("form", module.form);
  visit.required("medium", module.medium);
  visit.required("vendor", module.vendor);
  visit.required("part_number", module.part_number);
  visit.optional("length_m", module.length_m);
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
  visit.optional("rail", interface.rail);
  visit.optional("module", interface.module);
  visit.optional("flow_control", interface.flow_control);
  visit.optional("dscp", interface.dscp);
  visit.optional("pause_received", interface.pause_received);
  visit.optional("pause_sent", interface.pause_sent);
  visit.optional("discards_received", interface.discards_received);
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
  visit.optional("iommu", device.iommu);
  visit.optional("bridges", device.bridges);
  visit.optional("counters", device.counters);
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
  visit.optional("gpu_access", containers.gpu_access);
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
  visit.optional("allocation", machine.allocation);
  visit.optional("open_driver", machine.open_driver);
  visit.optional("modules", machine.modules);
  visit.optional("kernel_command_line", machine.kernel_command_line);
  visit.optional("sysctl", machine.sysctl);
  visit.optional("acs_redirects", machine.acs_redirects);
  visit.optional("fabric_manager", machine.fabric_manager);
  visit.optional("xids", machine.xids);
}

Document to_json(const FabricManager& manager) { return write_fields(manager); }
void from_json(const Document& document, FabricManager& manager) { read_fields(document, manager); }
Document to_json(const XidLine& xid) { return write_fields(xid); }
void from_json(const Document& document, XidLine& xid) { read_fields(document, xid); }

Document to_json(const NcclBuild& build) { return write_fields(build); }
void from_json(const Document& document, NcclBuild& build) { read_fields(document, build); }
Document to_json(const NetworkSetting& setting) { return write_fields(setting); }
void from_json(const Document& document, NetworkSetting& setting) { read_fields(document, setting); }
Document to_json(const Machine& machine) { return write_fields(machine); }
void from_json(const Document& document, Machine& machine) { read_fields(document, machine); }

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
    if (interface.port && interface.rail) fast.push_back(&interface);
  }
  std::sort(fast.begin(), fast.end(), [](const NetworkInterface* a, const NetworkInterface* b) {
    return std::tie(*a->port, *a->rail) < std::tie(*b->port, *b->rail);
  });
  return fast;
}

}  // namespace yoke::spec
