// Findings over time: each has a beginning and an end. What comes and goes within its rule's pace is none, so nothing
// flickers. Pure: times are given.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/finding.h"

namespace yoke::watch {

struct TrackedFinding {
  spec::Finding finding;  // as it was when last seen
  double first_seen = 0, last_seen = 0;
  std::optional<double> began = {};  // since when it is a finding; absent: it has not lasted long enough
  std::optional<double> ended = {};  // when it was last seen, once it is over
};

struct FindingChange {
  enum class Kind { kBegins, kEnds } kind;
  TrackedFinding finding;
};

class FindingTracker {
 public:
  // What is found at this moment: which of it begins or ends by that.
  std::vector<FindingChange> take(double now, const std::vector<spec::Finding>& found);
  std::vector<TrackedFinding> open() const;                              // worst first, then the oldest
  const std::vector<TrackedFinding>& closed() const { return closed_; }  // the last so many, oldest first

 private:
  std::vector<TrackedFinding> seen_;
  std::vector<TrackedFinding> closed_;
};

Document to_json(const TrackedFinding& tracked);

}  // namespace yoke::watch
