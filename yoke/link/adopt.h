// From what a discovery found to a cluster file. Addresses that are there are adopted as they are, no matter who gave
// them: nothing is changed, and what could be better is for rules to say (yoke/check). A cabled rail without an address
// gets a proposal beside them. Where there are none at all (or new ones are asked for), a plan is proposed that `yoke
// link setup` then makes so: one subnet for each half of each cable. The MTU of the file is the one that is wanted.
// Pure.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/link/discover_node.h"
#include "yoke/link/topology.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

// A node as it was reached, and what it told.
struct FoundNode {
  spec::ClusterNode access;
  NodeReport report;
};

enum class AddressChoice {
  kAdopt,    // those that are there; a proposal where there are none
  kPropose,  // new ones, whatever is there
};

struct AdoptOptions {
  AddressChoice addresses = AddressChoice::kAdopt;
  std::optional<spec::Cluster> known;  // a cluster file that is there: its name, lab and expectations stay
};

struct Discovery {
  LinkMap map;                           // its nodes as in `cluster`
  std::optional<spec::Cluster> cluster;  // absent where the nodes are not joined in a way that yoke knows
  bool adopted = false;                  // its addresses are those that are there
  std::vector<spec::LinkEnd> proposed =
      {};                 // of an adopted cluster: ends without an address, for which one is proposed
  std::string set_up_by;  // in words, for people: "NVIDIA's two-Spark playbook"
};

// `nodes` are put into the map's order. Throws Error(kInvalid) where what is there cannot be written as a cluster file
// (two nodes of one address), with the hint to have new addresses proposed.
Discovery adopt_cluster(std::vector<FoundNode>& nodes, LinkMap map, const AdoptOptions& options);

// The ends that have an address, and the one that counts: given by somebody before given by itself (169.254/16).
using EndAddresses = std::map<spec::LinkEnd, Ipv4Prefix>;
EndAddresses addresses_there(const std::vector<FoundNode>& nodes, const LinkMap& map);
EndAddresses propose_addresses(const std::vector<FoundNode>& nodes, const LinkMap& map);
// For the ends that have none beside those that are there: in the subnet of their other end, else in one of their own
// with the host numbers of the port's other rail. What is there stays. An end whose address is held by a bond or a VLAN
// gets none, and neither does one beside self-given addresses.
EndAddresses complete_addresses(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& there);

// Ends that share a subnet in a good plan: a segment's, or where several ends of a node are in one segment (a switch
// that joins all rails) those of the same place among their node's.
std::vector<std::vector<spec::LinkEnd>> subnet_groups(const LinkMap& map);

const spec::NetworkInterface& interface_at(const std::vector<FoundNode>& nodes, const spec::LinkEnd& end);
bool is_link_local(const Ipv4Prefix& prefix);

// Whose work the addresses look like.
std::string guess_origin(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& addresses);

}  // namespace yoke::link
