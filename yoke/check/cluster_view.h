// The facts as rules want to see them: every rail in use with both of its ends. Pointers go into the Survey, which
// must outlive the view.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/spec/hardware.h"
#include "yoke/spec/survey.h"

namespace yoke::check {

// One node's end of a rail. In use are the rails that the cluster file names; without these, where the cabling is
// known, all of the ports that join nodes; else both rails of every port of the fabric (yoke/spec/fabric.h) that has a
// link on one of them.
struct RailEnd {
  const spec::SurveyedNode* node = nullptr;
  std::string name;                                   // of the interface
  const spec::NetworkInterface* interface = nullptr;  // null: the cluster file names one that the machine does not have
  const spec::RdmaDevice* rdma = nullptr;             // null: none
  int port = 0;
  std::string rail;                  // "A", "B"
  std::optional<Ipv4Prefix> wanted;  // the cluster file's address
  // Who has its addresses: the interface itself, its bond, or without a cluster file's word a VLAN over it.
  const spec::NetworkInterface* holder = nullptr;
  std::optional<Ipv4Prefix> address;  // the holder's; the wanted one where it has that
  std::string bond;                   // that it is a member of; empty: none
  std::vector<std::size_t> peers;     // its other ends, as places in ClusterView::rails
  bool is_heard = true;               // where the cabling was looked at: it is in a segment that joins nodes

  bool is_ethernet() const;
  // RoCE needs IP. InfiniBand does not, and its interface, which carries IP over it, need not even be up: it counts
  // where the cluster file gives it an address.
  bool needs_ip() const { return is_ethernet() || wanted; }
  bool is_up() const;
  bool works() const { return is_up() && address; }                         // as far as this end alone can tell
  const std::string& handle() const { return bond.empty() ? name : bond; }  // what addresses and the MTU are set on
  std::string title() const;  // "half B of port 0 (enP2p1s0f0np0)", without the port where it is not known
};

// A machine that is not the node as which it was reached: the cluster file is wrong, and whatever else it says of the
// node's rails would be held against another machine.
struct MistakenNode {
  const spec::SurveyedNode* node = nullptr;
  std::string really;     // the node's name whose machine it is
  bool is_twice = false;  // that one was reached as itself too
  std::string evidence;
};

struct ClusterView {
  explicit ClusterView(const spec::Survey& facts);

  const spec::Survey& facts;
  std::vector<MistakenNode> mistaken;
  std::vector<RailEnd> rails;  // node by node, port by port; none of mistaken nodes
  // Cabled rails of the machines that the cluster file neither lists nor marks as unused.
  std::vector<RailEnd> unlisted;
  bool lab = false;  // virtual nodes: they show another machine's hardware but have their own limits

  std::vector<const RailEnd*> rails_of(const spec::SurveyedNode& node) const;
  const RailEnd* find_rail(std::string_view node, std::string_view interface) const;
  const spec::SurveyedNode* find_node(std::string_view name) const;
  bool is_mistaken(const spec::SurveyedNode& node) const;
  int mtu_wanted() const;
  // Of the cluster file, else of the cabling as it was heard; absent: not known.
  std::optional<spec::Topology> topology() const;
  // Breakout optics, as in a mesh: each half of a port is a link of its own, and one without a cable lacks nothing.
  bool has_split_ports() const;
};

std::vector<MistakenNode> find_mistaken(const spec::Survey& facts);
// Both ends work and are in one network.
bool are_joined(const RailEnd& a, const RailEnd& b);
// Addresses of two rails of one node that lie in one network.
std::optional<std::pair<Ipv4Prefix, Ipv4Prefix>> shared_subnet(const RailEnd& a, const RailEnd& b);
// Whether the address is right but its prefix length is not: by the cluster file, else by an other end's before it.
bool has_wrong_prefix(const ClusterView& view, const RailEnd& end);
// Another interface of the node, no rail, that takes packets of the rail's network; null: none.
const spec::NetworkInterface* outsider_in_network(const ClusterView& view, const RailEnd& end);
// The outsider's address that lies in a network of the rail's.
Ipv4Prefix address_within(const spec::NetworkInterface& outsider, const spec::NetworkInterface& rail);
// Whether this rail shares a network with any other: one rule tells that, and the rest would only repeat it.
bool shares_a_subnet(const ClusterView& view, const RailEnd& end);
// An interface that has a rail's address although another node's rail has it, and by the cluster file should.
struct DoubleAddress {
  const spec::SurveyedNode* node = nullptr;
  const spec::NetworkInterface* interface = nullptr;
  const RailEnd* owner = nullptr;
  Ipv4 address;
};
std::vector<DoubleAddress> double_addresses(const ClusterView& view);
// Whether an address of this rail is elsewhere too.
bool has_double(const ClusterView& view, const RailEnd& end);
// The catalogue's row for the machine, by its GPU; null where it is not in there.
const spec::Hardware* hardware_of(const spec::Machine& machine);
bool is_gb10(const spec::Machine& machine);
// What a port of this kind agrees on where all is well: the rate of all its rails, or of one where ports are split.
BitsPerSecond port_rate(const ClusterView& view, const spec::Hardware& hardware);
bool has_active_rdma(const spec::Machine& machine);
// A container runtime's bridge. libvirt's and one's own bridge over the wired port are something else.
bool is_container_bridge(const spec::NetworkInterface& interface);
// The route of the main table by which packets to an address leave; null where none leads there.
const spec::Route* find_route(const spec::Machine& machine, Ipv4 address);
// The interfaces by which packets from a rail to its peer leave: as the kernel said, else by the main table. Nothing
// where it is not known; empty where no route leads there.
std::optional<std::vector<std::string>> routes_to(const RailEnd& from, const RailEnd& to);
// Whether they leave by anything else than the rail.
bool goes_elsewhere(const RailEnd& from, const RailEnd& to);
// The end of a measured way that refused a connection although we listened there: its filter does. Null where it did
// not, and where both ends are known to drop nothing.
const RailEnd* refusing_end(const ClusterView& view, const spec::RailMeasurement& way);

}  // namespace yoke::check
