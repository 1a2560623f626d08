// Who is cabled to whom, from who heard whose beacon. Pure: infer_topology() takes the ends that nodes have and the
// sightings between them, and answers segments (a cable's half, or what a switch joins), the topology, and findings
// about what does not fit. A sighting one way is enough to know a segment; that the other way is missing is a finding.
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "yoke/spec/cluster.h"
#include "yoke/spec/finding.h"

namespace yoke {

// A fast interface of a node. A node's ends are ordered by port, then half.
struct LinkEnd {
  int node = 0;  // its place in the list of nodes
  int port = 0;
  std::string half;
  std::string interface;
  friend auto operator<=>(const LinkEnd&, const LinkEnd&) = default;
};

struct Sighting {
  LinkEnd by;
  LinkEnd from;
  friend auto operator<=>(const Sighting&, const Sighting&) = default;
};

struct TopologyEnd {
  int port = 0;
  std::string half;
  std::string interface;
  bool up = true;
  bool carrier = true;
};

struct TopologyNode {
  std::string name;
  std::vector<TopologyEnd> ends;
};

// Ends that reach each other without a router: two for one half of a cable, more behind a switch.
struct LinkSegment {
  std::vector<LinkEnd> ends;  // in order
  bool joins(int node) const;
};

struct LinkMap {
  std::vector<LinkSegment> segments;  // those that join nodes, in the order of their first ends
  std::optional<Topology> topology;   // absent where it is none that yoke knows: the findings say why
  std::vector<int> order;             // of the nodes: around a ring from the first on, else as given
  std::vector<Finding> findings;
};

enum class SightingSource {
  kBeacons,    // each end sends and listens: a silent one is a finding
  kAddresses,  // ends in one subnet are taken as joined, and nothing follows from silence
};

struct TopologyOptions {
  SightingSource source = SightingSource::kBeacons;
  bool switch_seen = false;  // a switch told its name by LLDP: else one between two nodes looks like a cable
};

LinkMap infer_topology(const std::vector<TopologyNode>& nodes, const std::vector<Sighting>& sightings,
                       TopologyOptions options = {});

}  // namespace yoke
