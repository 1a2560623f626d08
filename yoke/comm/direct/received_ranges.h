// Which parts of a stream have come: all before prefix(), and ranges beyond it that rails brought out of order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace yoke::comm::direct {

class ReceivedRanges {
 public:
  std::uint64_t prefix() const { return prefix_; }
  bool has_gaps() const { return !beyond_.empty(); }

  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin > prefix_) {
      beyond_.insert(std::ranges::lower_bound(beyond_, std::pair(begin, end)), {begin, end});
      return;
    }
    prefix_ = std::max(prefix_, end);
    std::size_t joined = 0;
    while (joined < beyond_.size() && beyond_[joined].first <= prefix_) {
      prefix_ = std::max(prefix_, beyond_[joined++].second);
    }
    beyond_.erase(beyond_.begin(), beyond_.begin() + static_cast<std::ptrdiff_t>(joined));
  }

 private:
  std::uint64_t prefix_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> beyond_;  // in order
};

}  // namespace yoke::comm::direct
