#include "yoke/watch/finding_tracker.h"

#include <algorithm>

#include "yoke/check/live.h"

namespace yoke::watch {
namespace {

constexpr std::size_t kMaxClosed = 1000;

bool is_same(const spec::Finding& a, const spec::Finding& b) {
  return a.rule == b.rule && a.node == b.node && a.subject == b.subject;
}

}  // namespace

std::vector<FindingChange> FindingTracker::take(double now, const std::vector<spec::Finding>& found) {
  std::vector<FindingChange> changes;
  for (const spec::Finding& finding : found) {
    auto known = std::find_if(seen_.begin(), seen_.end(),
                              [&](const TrackedFinding& tracked) { return is_same(tracked.finding, finding); });
    if (known == seen_.end()) {
      seen_.push_back({.finding = finding, .first_seen = now, .last_seen = now});
      known = std::prev(seen_.end());
    }
    known->finding = finding;
    known->last_seen = now;
    if (known->began || now - known->first_seen < check::live_pace(finding.rule).raise.value) continue;
    known->began = known->first_seen;
    changes.push_back({FindingChange::Kind::kBegins, *known});
  }
  std::erase_if(seen_, [&](TrackedFinding& tracked) {
    if (tracked.last_seen >= now) return false;
    if (!tracked.began) return true;  // it must be there all the time until it is a finding
    if (now - tracked.last_seen < check::live_pace(tracked.finding.rule).clear.value) return false;
    tracked.ended = tracked.last_seen;
    changes.push_back({FindingChange::Kind::kEnds, tracked});
    closed_.push_back(tracked);
    return true;
  });
  if (closed_.size() > kMaxClosed) closed_.erase(closed_.begin(), closed_.end() - kMaxClosed);
  return changes;
}

std::vector<TrackedFinding> FindingTracker::open() const {
  std::vector<TrackedFinding> list;
  std::copy_if(seen_.begin(), seen_.end(), std::back_inserter(list),
               [](const TrackedFinding& tracked) { return tracked.began.has_value(); });
  std::stable_sort(list.begin(), list.end(), [](const TrackedFinding& a, const TrackedFinding& b) {
    if (a.finding.severity != b.finding.severity) return a.finding.severity > b.finding.severity;
    return *a.began < *b.began;
  });
  return list;
}

Document to_json(const TrackedFinding& tracked) {
  Document document = spec::to_json(tracked.finding);
  if (tracked.began) document.add("began", Document::number(*tracked.began));
  if (tracked.ended) document.add("ended", Document::number(*tracked.ended));
  return document;
}

}  // namespace yoke::watch
