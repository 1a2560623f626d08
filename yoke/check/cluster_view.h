// The facts as rules want to see them: every half in use with both of its ends. Pointers go into the Survey, which
// must outlive the view.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/spec/hardware.h"
#include "yoke/spec/survey.h"

namespace yoke {

// One node's end of a half. In use are the halves that the cluster file names; without these, where the cabling is
// known, all of the ports that join nodes; else both halves of every port of the fabric (yoke/spec/fabric.h) that has a
// link on one of them.
struct HalfEnd {
  const SurveyedNode* node = nullptr;
  std::string name;                             // of the interface
  const NetworkInterface* interface = nullptr;  // null: the cluster file names one that the machine does not have
  const RdmaDevice* rdma = nullptr;             // null: none
  int port = 0;
  std::string half;                  // "A", "B"
  std::optional<Ipv4Prefix> wanted;  // the cluster file's address
  // Who has its addresses: the interface itself, its bond, or without a cluster file's word a VLAN over it.
  const NetworkInterface* holder = nullptr;
  std::optional<Ipv4Prefix> address;  // the holder's; the wanted one where it has that
  std::string bond;                   // that it is a member of; empty: none
  std::vector<std::size_t> peers;     // its other ends, as places in ClusterView::halves
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
// node's halves would be held against another machine.
struct MistakenNode {
  const SurveyedNode* node = nullptr;
  std::string really;     // the node's name whose machine it is
  bool is_twice = false;  // that one was reached as itself too
  std::string evidence;
};

struct ClusterView {
  explicit ClusterView(const Survey& facts);

  const Survey& facts;
  std::vector<MistakenNode> mistaken;
  std::vector<HalfEnd> halves;  // node by node, port by port; none of mistaken nodes
  bool lab = false;             // virtual nodes: they show another machine's hardware but have their own limits

  std::vector<const HalfEnd*> halves_of(const SurveyedNode& node) const;
  const HalfEnd* find_half(std::string_view node, std::string_view interface) const;
  const SurveyedNode* find_node(std::string_view name) const;
  bool is_mistaken(const SurveyedNode& node) const;
  int mtu_wanted() const;
};

std::vector<MistakenNode> find_mistaken(const Survey& facts);
// Both ends work and are in one network.
bool are_joined(const HalfEnd& a, const HalfEnd& b);
// Addresses of two halves of one node that lie in one network.
std::optional<std::pair<Ipv4Prefix, Ipv4Prefix>> shared_subnet(const HalfEnd& a, const HalfEnd& b);
// Whether the address is right but its prefix length is not: by the cluster file, else by an other end's before it.
bool has_wrong_prefix(const ClusterView& view, const HalfEnd& end);
// Another interface of the node, no half, that takes packets of the half's network; null: none.
const NetworkInterface* outsider_in_network(const ClusterView& view, const HalfEnd& end);
// The outsider's address that lies in a network of the half's.
Ipv4Prefix address_within(const NetworkInterface& outsider, const NetworkInterface& half);
// Whether this half shares a network with any other: one rule tells that, and the rest would only repeat it.
bool shares_a_subnet(const ClusterView& view, const HalfEnd& end);
// An interface that has a half's address although another node's half has it, and by the cluster file should.
struct DoubleAddress {
  const SurveyedNode* node = nullptr;
  const NetworkInterface* interface = nullptr;
  const HalfEnd* owner = nullptr;
  Ipv4 address;
};
std::vector<DoubleAddress> double_addresses(const ClusterView& view);
// Whether an address of this half is elsewhere too.
bool has_double(const ClusterView& view, const HalfEnd& end);
// The catalogue's row for the machine, by its GPU; null where it is not in there.
const Hardware* hardware_of(const Machine& machine);
bool is_gb10(const Machine& machine);
bool has_active_rdma(const Machine& machine);
// A container runtime's bridge. libvirt's and one's own bridge over the wired port are something else.
bool is_container_bridge(const NetworkInterface& interface);
// The route of the main table by which packets to an address leave; null where none leads there.
const Route* find_route(const Machine& machine, Ipv4 address);
// The interfaces by which packets from a half to its peer leave: as the kernel said, else by the main table. Nothing
// where it is not known; empty where no route leads there.
std::optional<std::vector<std::string>> ways_to(const HalfEnd& from, const HalfEnd& to);
// Whether they leave by anything else than the half.
bool goes_elsewhere(const HalfEnd& from, const HalfEnd& to);
// The end of a measured way that refused a connection although we listened there: its filter does. Null where it did
// not, and where both ends are known to drop nothing.
const HalfEnd* refusing_end(const ClusterView& view, const HalfMeasurement& way);

}  // namespace yoke
