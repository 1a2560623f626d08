// Who is cabled to whom, as plain data: which ends heard which, and the segments that follow from it. `yoke link
// discover` finds it out; the rules of yoke/check evaluate it.
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/ip.h"
#include "yoke/spec/cluster.h"

namespace yoke::spec {

// A fast interface of a node. A node's ends are ordered by port, then rail.
struct LinkEnd {
  int node = 0;  // its place in the list of nodes
  int port = 0;
  std::string rail;
  std::string interface;
  friend auto operator<=>(const LinkEnd&, const LinkEnd&) = default;
};

struct Adjacency {
  LinkEnd by;
  LinkEnd from;
  friend auto operator<=>(const Adjacency&, const Adjacency&) = default;
};

// Ends that reach each other without a router: two for one half of a cable, more behind a switch.
struct LinkSegment {
  std::vector<LinkEnd> ends;  // in order
  bool joins(int node) const;
  friend bool operator==(const LinkSegment&, const LinkSegment&) = default;
};

enum class AdjacencySource {
  kBeacons,    // each end sends and listens: a silent one is a finding
  kAddresses,  // ends in one subnet are taken as joined, and nothing follows from silence
};

// A machine that was heard and is not one of the nodes.
struct UnknownNode {
  std::string node, interface;  // who heard it, and where
  std::string hostname, their_interface;
  std::optional<Ipv4> address;  // as its beacon says
  friend bool operator==(const UnknownNode&, const UnknownNode&) = default;
};

// A machine that announced itself, and that ssh did not confirm.
struct UnconfirmedBeacon {
  std::string hostname, why, hint;
  friend bool operator==(const UnconfirmedBeacon&, const UnconfirmedBeacon&) = default;
};

struct Cabling {
  AdjacencySource source = AdjacencySource::kBeacons;
  std::vector<Adjacency> adjacencies;
  std::vector<LinkSegment> segments;  // those that join nodes, in the order of their first ends
  std::vector<LinkSegment> loops;     // those that lead back to their node
  std::optional<Topology> topology;   // absent where it is none that yoke knows
  std::vector<UnknownNode> unknown_nodes;
  std::vector<UnconfirmedBeacon> unconfirmed;
  friend bool operator==(const Cabling&, const Cabling&) = default;
};

// Whether two halves of one port lead to different nodes, as only breakout optics make it. Behind a switch: no.
bool has_split_ports(const Cabling& cabling);

}  // namespace yoke::spec
