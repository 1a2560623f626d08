// What does not fit in a map of cables, as findings. Internal to topology.cc.
#pragma once
#include <vector>

#include "yoke/link/topology.h"

namespace yoke {

struct TopologyFindings {
  const std::vector<TopologyNode>& nodes;
  const std::vector<LinkSegment>& segments;

  void tell_loops(const std::vector<LinkSegment>& loops, std::vector<Finding>& findings) const;
  void tell_crossed(std::vector<Finding>& findings) const;
  void tell_silent_nodes(std::vector<Finding>& findings) const;
  void tell_silent_halves(std::vector<Finding>& findings) const;
  void tell_one_way(const std::vector<Sighting>& sightings, std::vector<Finding>& findings) const;
  void tell_unknown(std::vector<Finding>& findings) const;

 private:
  const std::string& name(int node) const { return nodes[static_cast<std::size_t>(node)].name; }
  std::string describe(const LinkEnd& end) const;  // "spark-1 port 0 half A (enp1s0f0np0)"
  bool is_joined(const LinkEnd& end) const;
};

}  // namespace yoke
