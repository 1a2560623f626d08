#include "yoke/link/topology.h"

#include <algorithm>
#include <map>
#include <set>

#include "yoke/spec/mesh.h"

namespace yoke::link {
namespace {

// Ends that are joined by sightings, directly or through others: lost frames between two of many do no harm.
std::vector<spec::LinkSegment> segments_of(const std::vector<spec::Adjacency>& adjacencies) {
  std::map<spec::LinkEnd, std::set<spec::LinkEnd>> heard;
  for (const spec::Adjacency& adjacency : adjacencies) {
    heard[adjacency.by].insert(adjacency.from);
    heard[adjacency.from].insert(adjacency.by);
  }
  std::vector<spec::LinkSegment> segments;
  std::set<spec::LinkEnd> done;
  for (const auto& [start, neighbours] : heard) {
    if (done.contains(start)) continue;
    std::vector<spec::LinkEnd> ends = {start};
    done.insert(start);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      for (const spec::LinkEnd& next : heard[ends[i]]) {
        if (done.insert(next).second) ends.push_back(next);
      }
    }
    std::sort(ends.begin(), ends.end());
    segments.push_back({std::move(ends)});
  }
  return segments;
}

bool is_loop(const spec::LinkSegment& segment) { return segment.ends.front().node == segment.ends.back().node; }

// For each node those it shares a cable with.
std::vector<std::set<int>> neighbours_by_cable(std::size_t nodes, const std::vector<spec::LinkSegment>& segments) {
  std::vector<std::set<int>> neighbours(nodes);
  for (const spec::LinkSegment& segment : segments) {
    const int a = segment.ends.front().node;
    const int b = segment.ends.back().node;
    neighbours[static_cast<std::size_t>(a)].insert(b);
    neighbours[static_cast<std::size_t>(b)].insert(a);
  }
  return neighbours;
}

// Four nodes without a switch: ports are split by breakout optics, so that each has a link to each of the three others.
// Three in a ring are one too, and yoke knows that as a ring.
bool joins_every_pair(const std::vector<std::set<int>>& neighbours) {
  return neighbours.size() == spec::kMeshNodes &&
         std::all_of(neighbours.begin(), neighbours.end(), [](const auto& n) { return n.size() == spec::kMeshHalves; });
}

// Around from the first node, in the direction of its first port; empty where the cables make no single ring.
std::vector<int> ring_order(const std::vector<spec::LinkSegment>& segments,
                            const std::vector<std::set<int>>& neighbours) {
  const bool two_each = std::all_of(neighbours.begin(), neighbours.end(), [](const auto& n) { return n.size() == 2; });
  if (!two_each || neighbours.size() < 3) return {};
  // Segments are in the order of their first ends, so this is the one on the first node's first joined port.
  std::vector<int> order = {0, segments.front().ends.back().node};
  while (order.size() <= neighbours.size()) {
    const std::set<int>& next = neighbours[static_cast<std::size_t>(order.back())];
    const int onward = *next.begin() == order[order.size() - 2] ? *next.rbegin() : *next.begin();
    if (onward == order.front()) break;
    order.push_back(onward);
  }
  return order.size() == neighbours.size() ? order : std::vector<int>{};
}

bool is_switch(const std::vector<spec::LinkSegment>& segments, std::size_t nodes) {
  const bool shared =
      std::any_of(segments.begin(), segments.end(), [](const spec::LinkSegment& s) { return s.ends.size() > 2; });
  const auto joins_all = [&](const spec::LinkSegment& segment) {
    for (int node = 0; node < static_cast<int>(nodes); ++node) {
      if (!segment.joins(node)) return false;
    }
    return true;
  };
  return shared && std::any_of(segments.begin(), segments.end(), joins_all);
}

}  // namespace

LinkMap infer_topology(std::size_t nodes, std::vector<spec::Adjacency> adjacencies, TopologyOptions options) {
  LinkMap map;
  for (std::size_t i = 0; i < nodes; ++i) map.order.push_back(static_cast<int>(i));
  for (spec::LinkSegment& segment : segments_of(adjacencies))
    (is_loop(segment) ? map.loops : map.segments).push_back(segment);
  map.adjacencies = std::move(adjacencies);

  const bool some_shared = std::any_of(map.segments.begin(), map.segments.end(),
                                       [](const spec::LinkSegment& s) { return s.ends.size() > 2; });
  if (is_switch(map.segments, nodes)) {
    map.topology = spec::Topology::kSwitch;
  } else if (!some_shared && !map.segments.empty()) {
    const auto neighbours = neighbours_by_cable(nodes, map.segments);
    const std::vector<int> around = ring_order(map.segments, neighbours);
    if (joins_every_pair(neighbours)) map.topology = spec::Topology::kMesh;
    if (nodes == 2) map.topology = options.switch_seen ? spec::Topology::kSwitch : spec::Topology::kDirect;
    if (!around.empty()) {
      map.topology = spec::Topology::kRing;
      map.order = around;
    }
  }
  return map;
}

}  // namespace yoke::link
