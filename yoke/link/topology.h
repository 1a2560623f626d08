// Who is cabled to whom, from who heard whose beacon. Pure: infer_topology() takes the sightings between the ends of
// the nodes and answers segments (a cable's rail, or what a switch joins) and the topology. A sighting one way is
// enough to know a segment; that the other way is missing is for a rule to say (yoke/check).
#pragma once
#include <optional>
#include <vector>

#include "yoke/spec/cabling.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

struct LinkMap {
  std::vector<spec::LinkSegment> segments;   // those that join nodes, in the order of their first ends
  std::vector<spec::LinkSegment> loops;      // those that lead back to their node
  std::vector<spec::Adjacency> adjacencies;  // from which all this follows
  std::optional<spec::Topology> topology;    // absent where it is none that yoke knows
  std::vector<int> order;                    // of the nodes: around a ring from the first on, else as given
};

struct TopologyOptions {
  bool switch_seen = false;  // a switch told its name by LLDP: else one between two nodes looks like a cable
};

LinkMap infer_topology(std::size_t nodes, std::vector<spec::Adjacency> adjacencies, TopologyOptions options = {});

}  // namespace yoke::link
