// A node's part in a discovery: it tells its facts, sends beacons on its fast interfaces and listens for those of
// others. Done by the agent (agent.h) on every node at once, so that all send while all listen.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/agent/action.h"
#include "yoke/base/document.h"
#include "yoke/base/ip.h"
#include "yoke/base/units.h"
#include "yoke/link/beacon_exchange.h"
#include "yoke/link/discover_lldp.h"
#include "yoke/spec/machine.h"

namespace yoke::link {

struct NodeReport {
  std::string identity;   // as in its beacons
  std::string version;    // of yoke there
  spec::Machine machine;  // names, GPUs, interfaces and RDMA devices only; the fast interfaces have a port and a half
  std::vector<HeardBeacon> heard;
  std::vector<LldpNeighbour> lldp;
  std::vector<std::string> netplan;           // the names of its netplan files: they tell who set it up
  std::optional<std::string> beacon_problem;  // why it could neither send nor listen
};

struct NodeQuestion {
  Seconds time{3};
  std::optional<Ipv4> address;  // where ssh reached it, for its beacons; absent: it finds out itself
};

NodeReport report_node(const NodeQuestion& question);

// The facts that a discovery needs, of this machine, in a few milliseconds.
spec::Machine inspect_interfaces(std::optional<Ipv4> management);

// Where a machine without RDMA devices has its fast interfaces: those that lead elsewhere than to the management
// network. Each is taken for a port of one rail. Does nothing where there are RDMA devices.
void mark_fast_interfaces(spec::Machine& machine, std::optional<Ipv4> management);

// The address by which others reach it beside the fabric: that of the default route's interface, else the first that is
// on no fast interface. Nothing where there is none.
std::optional<Ipv4> management_address(const spec::Machine& machine);

// 32 hex digits. /etc/machine-id alone would not do: it is secret, and cloned disks share it.
std::string node_identity(std::string_view machine_id, const spec::Machine& machine);
std::vector<Beacon> beacons_of(const spec::Machine& machine, const std::string& identity, std::optional<Ipv4> address);
// A host name as a node's name: without its domain and without what no name may have.
std::string node_name(std::string_view hostname);

Document report_to_discovery(const Document& question, agent::AgentContext& context);
std::string read_node_identity(const spec::Machine& machine);  // of this machine

Document to_json(const NodeReport& report);
void from_json(const Document& document, NodeReport& report);
Document to_json(const NodeQuestion& question);
void from_json(const Document& document, NodeQuestion& question);

}  // namespace yoke::link
