#include "yoke/spec/cabling.h"

#include <algorithm>

namespace yoke::spec {

bool LinkSegment::joins(int node) const {
  return std::any_of(ends.begin(), ends.end(), [&](const LinkEnd& end) { return end.node == node; });
}

}  // namespace yoke::spec
