#include "yoke/spec/cabling.h"

#include <algorithm>
#include <map>
#include <utility>

namespace yoke::spec {

bool LinkSegment::joins(int node) const {
  return std::any_of(ends.begin(), ends.end(), [&](const LinkEnd& end) { return end.node == node; });
}

bool has_split_ports(const Cabling& cabling) {
  std::map<std::pair<int, int>, int> led_to;  // by node and port
  const auto leads_elsewhere = [&](const LinkEnd& end, const LinkEnd& peer) {
    return led_to.try_emplace({end.node, end.port}, peer.node).first->second != peer.node;
  };
  return std::any_of(cabling.segments.begin(), cabling.segments.end(), [&](const LinkSegment& segment) {
    if (segment.ends.size() != 2) return false;
    const LinkEnd& a = segment.ends.front();
    const LinkEnd& b = segment.ends.back();
    return leads_elsewhere(a, b) || leads_elsewhere(b, a);
  });
}

}  // namespace yoke::spec
