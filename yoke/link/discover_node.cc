#include "yoke/link/discover_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke::link {
namespace {

bool has_address(const spec::NetworkInterface& interface, Ipv4 address) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [&](const Ipv4Prefix& prefix) { return prefix.address == address; });
}

bool is_default_way(const spec::Machine& machine, const spec::NetworkInterface& interface) {
  return std::any_of(machine.routes.begin(), machine.routes.end(),
                     [&](const spec::Route& route) { return !route.destination && route.interface == interface.name; });
}

bool may_be_fast(const spec::Machine& machine, const spec::NetworkInterface& interface,
                 std::optional<Ipv4> management) {
  const bool is_wire =
      interface.kind == spec::InterfaceKind::kEthernet || interface.kind == spec::InterfaceKind::kVirtual;
  return is_wire && interface.mac.size() == 17 && !interface.master && !is_default_way(machine, interface) &&
         !(management && has_address(interface, *management));
}

}  // namespace

void mark_fast_interfaces(spec::Machine& machine, std::optional<Ipv4> management) {
  if (!spec::fast_interfaces(machine).empty()) return;
  if (!management) management = management_address(machine);
  int port = 0;
  for (spec::NetworkInterface& interface : machine.interfaces) {
    if (!may_be_fast(machine, interface, management)) continue;
    interface.port = port++;
    interface.rail = "A";
  }
}

std::optional<Ipv4> management_address(const spec::Machine& machine) {
  std::optional<Ipv4> first;
  for (const spec::NetworkInterface& interface : machine.interfaces) {
    const bool elsewhere =
        interface.port || interface.kind == spec::InterfaceKind::kLoopback || interface.addresses.empty();
    // docker0 and its like have the same address on every machine.
    if (elsewhere || interface.kind == spec::InterfaceKind::kBridge) continue;
    if (is_default_way(machine, interface)) return interface.addresses.front().address;
    if (!first) first = interface.addresses.front().address;
  }
  return first;
}

std::string node_identity(std::string_view machine_id, const spec::Machine& machine) {
  std::string all = fmt::format("yoke node\n{}\n{}\n", trim(machine_id), machine.hostname);
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(machine)) all += interface->mac + "\n";
  return sha256_hex(all).substr(0, 32);
}

std::string node_name(std::string_view hostname) {
  std::string name(hostname.substr(0, std::min<std::size_t>(hostname.find('.'), 63)));
  for (char& c : name) {
    if (!spec::is_plain_name(std::string("x") + c)) c = '-';
  }
  if (!spec::is_plain_name(name)) name.insert(0, "node");
  return name.substr(0, 63);
}

std::vector<Beacon> beacons_of(const spec::Machine& machine, const std::string& identity, std::optional<Ipv4> address) {
  std::vector<Beacon> beacons;
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(machine)) {
    beacons.push_back({.node = identity,
                       .hostname = node_name(machine.hostname),
                       .interface = interface->name,
                       .mac = interface->mac,
                       .port = *interface->port,
                       .rail = *interface->rail,
                       .version = std::string(build_info().version),
                       .address = address});
  }
  return beacons;
}

spec::Machine inspect_interfaces(std::optional<Ipv4> management) {
  // Not the whole probe: NVML and the search for NCCL take longer than all the rest.
  const probe::Sources sources{
      .files = std::make_shared<DiskTree>(), .links = probe::read_link_table(), .nvml = {}, .system = {}};
  spec::Machine machine;
  probe::collect_os(sources, machine);
  probe::collect_gpus(sources, machine);
  probe::collect_interfaces(sources, machine);
  probe::collect_rdma(sources, machine);
  probe::collect_ports(sources, machine);
  mark_fast_interfaces(machine, management);
  return machine;
}

std::string read_node_identity(const spec::Machine& machine) {
  return node_identity(DiskTree().read("/etc/machine-id").value_or(""), machine);
}

NodeReport report_node(const NodeQuestion& question) {
  NodeReport report{
      .identity = {}, .version = std::string(build_info().version), .machine = inspect_interfaces(question.address)};
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

Document report_to_discovery(const Document& question, agent::AgentContext&) {
  return to_json(report_node(from_json<NodeQuestion>(question)));
}

template <class Visitor>
void visit_fields(Visitor& visit, HeardBeacon& heard) {
  visit.required("interface", heard.interface);
  visit.required("beacon", heard.beacon);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeQuestion& question) {
  visit.required("time", question.time);
  visit.optional("address", question.address);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeReport& report) {
  visit.required("identity", report.identity);
  visit.required("version", report.version);
  visit.required("machine", report.machine);
  visit.optional("received", report.heard);
  visit.optional("lldp", report.lldp);
  visit.optional("netplan", report.netplan);
  visit.optional("beacon_problem", report.beacon_problem);
}

Document to_json(const NodeReport& report) { return write_fields(report); }
void from_json(const Document& document, NodeReport& report) { read_fields(document, report); }
Document to_json(const NodeQuestion& question) { return write_fields(question); }
void from_json(const Document& document, NodeQuestion& question) { read_fields(document, question); }

}  // namespace yoke::link
