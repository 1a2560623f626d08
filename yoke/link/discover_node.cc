#include "yoke/link/discover_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke {
namespace {

bool has_address(const NetworkInterface& interface, Ipv4 address) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [&](const Ipv4Prefix& prefix) { return prefix.address == address; });
}

bool is_default_way(const Machine& machine, const NetworkInterface& interface) {
  return std::any_of(machine.routes.begin(), machine.routes.end(),
                     [&](const Route& route) { return !route.destination && route.interface == interface.name; });
}

bool may_be_fast(const Machine& machine, const NetworkInterface& interface, std::optional<Ipv4> management) {
  const bool is_wire = interface.kind == InterfaceKind::kEthernet || interface.kind == InterfaceKind::kVirtual;
  return is_wire && interface.mac.size() == 17 && !interface.master && !is_default_way(machine, interface) &&
         !(management && has_address(interface, *management));
}

}  // namespace

void mark_fast_interfaces(Machine& machine, std::optional<Ipv4> management) {
  if (!fast_interfaces(machine).empty()) return;
  if (!management) management = management_address(machine);
  int port = 0;
  for (NetworkInterface& interface : machine.interfaces) {
    if (!may_be_fast(machine, interface, management)) continue;
    interface.port = port++;
    interface.half = "A";
  }
}

std::optional<Ipv4> management_address(const Machine& machine) {
  std::optional<Ipv4> first;
  for (const NetworkInterface& interface : machine.interfaces) {
    const bool elsewhere = interface.port || interface.kind == InterfaceKind::kLoopback || interface.addresses.empty();
    // docker0 and its like have the same address on every machine.
    if (elsewhere || interface.kind == InterfaceKind::kBridge) continue;
    if (is_default_way(machine, interface)) return interface.addresses.front().address;
    if (!first) first = interface.addresses.front().address;
  }
  return first;
}

std::string node_identity(std::string_view machine_id, const Machine& machine) {
  std::string all = fmt::format("yoke node\n{}\n{}\n", trim(machine_id), machine.hostname);
  for (const NetworkInterface* interface : fast_interfaces(machine)) all += interface->mac + "\n";
  return sha256_hex(all).substr(0, 32);
}

std::string node_name(std::string_view hostname) {
  std::string name(hostname.substr(0, std::min<std::size_t>(hostname.find('.'), 63)));
  for (char& c : name) {
    if (!is_plain_name(std::string("x") + c)) c = '-';
  }
  if (!is_plain_name(name)) name.insert(0, "node");
  return name.substr(0, 63);
}

std::vector<Beacon> beacons_of(const Machine& machine, const std::string& identity, std::optional<Ipv4> address) {
  std::vector<Beacon> beacons;
  for (const NetworkInterface* interface : fast_interfaces(machine)) {
    beacons.push_back({.node = identity,
                       .hostname = node_name(machine.hostname),
                       .interface = interface->name,
                       .mac = interface->mac,
                       .port = *interface->port,
                       .half = *interface->half,
                       .version = std::string(build_info().version),
                       .address = address});
  }
  return beacons;
}

Machine look_at_interfaces(std::optional<Ipv4> management) {
  // Not the whole probe: NVML and the search for NCCL take longer than all the rest.
  const Sources sources{.files = std::make_shared<DiskTree>(), .links = read_link_table(), .nvml = {}, .system = {}};
  Machine machine;
  collect_os(sources, machine);
  collect_gpus(sources, machine);
  collect_interfaces(sources, machine);
  collect_rdma(sources, machine);
  collect_ports(sources, machine);
  mark_fast_interfaces(machine, management);
  return machine;
}

std::string read_node_identity(const Machine& machine) {
  return node_identity(DiskTree().read("/etc/machine-id").value_or(""), machine);
}

NodeReport report_node(const NodeQuestion& question) {
  NodeReport report{
      .identity = {}, .version = std::string(build_info().version), .machine = look_at_interfaces(question.address)};
  report.identity = read_node_identity(report.machine);
  report.netplan = DiskTree().list("/etc/netplan");
  const auto address = question.address ? question.address : management_address(report.machine);
  const std::vector<Beacon> own = beacons_of(report.machine, report.identity, address);
  try {
    report.heard = exchange_beacons(own, question.time);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPermission) throw;
    report.beacon_problem = error.message();
  }
  report.lldp = read_lldp_neighbours();
  return report;
}

Document report_to_discovery(const Document& question, AgentContext&) {
  return to_json(report_node(node_question_from_json(question)));
}

}  // namespace yoke
