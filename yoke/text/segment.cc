#include "yoke/text/segment.h"

#include <algorithm>

namespace yoke::text {

std::string joined_text(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

OriginRanges::OriginRanges(const std::vector<Segment>& segments) {
  std::size_t end = 0;
  for (const Segment& segment : segments) {
    end += segment.text.size();
    ranges_.push_back({end, segment.origin});
  }
}

bool OriginRanges::all_from_template(std::size_t begin, std::size_t end) const {
  auto range = std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                                [](std::size_t at, const Range& candidate) { return at < candidate.end; });
  for (; range != ranges_.end() && begin < end; ++range) {
    if (range->origin != Origin::kTemplate) return false;
    begin = range->end;
  }
  return begin >= end || last_ == Origin::kTemplate;
}

}  // namespace yoke::text
