// From what a discovery found to a cluster file. Addresses that are there are adopted as they are, whoever gave them:
// nothing is changed, and what could be better is for rules to say (yoke/check). Where there are none at all (or new
// ones are asked for), a plan is proposed that `yoke link setup` then makes so: one subnet for each half of each cable.
// Pure.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/link/discover_node.h"
#include "yoke/link/topology.h"
#include "yoke/spec/cluster.h"

namespace yoke {

// A node as it was reached, and what it told.
struct FoundNode {
  ClusterNode access;
  NodeReport report;
};

enum class AddressChoice {
  kAdopt,    // those that are there; a proposal where there are none
  kPropose,  // new ones, whatever is there
};

struct AdoptOptions {
  AddressChoice addresses = AddressChoice::kAdopt;
  std::optional<Cluster> known;  // a cluster file that is there: its name, lab and expectations stay
};

struct Discovery {
  LinkMap map;                     // its nodes as in `cluster`
  std::optional<Cluster> cluster;  // absent where the nodes are not joined in a way that yoke knows
  bool adopted = false;            // its addresses are those that are there
  std::string set_up_by;           // in words, for people: "NVIDIA's two-Spark playbook"
};

// `nodes` are put into the map's order. Throws Error(kInvalid) where what is there cannot be told in a cluster file
// (two nodes of one address), with the hint to have new addresses proposed.
Discovery adopt_cluster(std::vector<FoundNode>& nodes, LinkMap map, const AdoptOptions& options);

// The ends that have an address, and the one that counts: given by somebody before given by itself (169.254/16).
using EndAddresses = std::map<LinkEnd, Ipv4Prefix>;
EndAddresses addresses_there(const std::vector<FoundNode>& nodes, const LinkMap& map);
EndAddresses propose_addresses(const std::vector<FoundNode>& nodes, const LinkMap& map);

// Ends that share a subnet in a good plan: a segment's, or where several ends of a node are in one segment (a switch
// that joins all halves) those of the same place among their node's.
std::vector<std::vector<LinkEnd>> subnet_groups(const LinkMap& map);

const NetworkInterface& interface_at(const std::vector<FoundNode>& nodes, const LinkEnd& end);
bool is_link_local(const Ipv4Prefix& prefix);

// Whose work the addresses look like.
std::string guess_origin(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& addresses);

}  // namespace yoke
