// Finds the nodes of a cluster and how they are cabled: reaches the machines by ssh, lets all of them send beacons and
// listen at once, and puts together what they tell. Where no machine is named, the beacons heard on this machine's fast
// interfaces propose whom to reach; what ssh's host keys do not vouch for stays out. Changes nothing anywhere.
//
//   Discovery found = discover_cluster({.machines = {{.address = "192.168.1.21"}, {.address = "192.168.1.22"}}});
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/fleet/sudo.h"
#include "yoke/link/adopt.h"

namespace yoke::link {

struct DiscoverOptions {
  std::vector<spec::ClusterNode> machines;  // by address, in the order of the cluster file; none: as beacons propose
  bool with_this_machine = true;            // as the head, where it has RDMA ports and is not among them
  std::optional<std::string> user;          // to log in as, for machines that beacons propose
  Seconds time{3};                          // of sending and listening
  AdoptOptions adopt;
  std::function<void(std::string_view)> on_step = {};  // what is being done now
  fleet::SudoPassword* password = nullptr;             // for beacons where sudo wants it
};

struct DiscoverResult {
  std::vector<FoundNode> nodes;  // in the order of the cluster file
  Discovery discovery;
  spec::AdjacencySource source = spec::AdjacencySource::kBeacons;
  std::vector<spec::UnknownNode> unknown_nodes = {};      // where the machines were named
  std::vector<spec::UnconfirmedBeacon> unconfirmed = {};  // where beacons proposed them
};

// Throws what keeps a machine from being reached, naming each; kUsage where two addresses are one machine or an address
// is on a cable itself; kUnavailable where there is nobody else.
DiscoverResult discover_cluster(const DiscoverOptions& options);

// The parts that are pure, in their order of use.

// Node names from host names where none were given, made unique.
void name_nodes(std::vector<FoundNode>& nodes);
std::vector<spec::Adjacency> adjacencies_from_beacons(const std::vector<FoundNode>& nodes);
// Where beacons could not be sent: ends in one subnet, and what LLDP tells.
std::vector<spec::Adjacency> adjacencies_from_addresses(const std::vector<FoundNode>& nodes);
// A switch's name, where one told it by LLDP on a fast interface.
std::optional<std::string> switch_name(const std::vector<FoundNode>& nodes);
// Machines that were heard but are none of ours: each once.
std::vector<spec::UnknownNode> find_unknown_nodes(const std::vector<FoundNode>& nodes);

}  // namespace yoke::link
