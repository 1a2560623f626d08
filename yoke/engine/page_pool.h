// The pages of a cache, handed out to sequences. Every rank has one and makes the same calls in the same order, so that
// all hand out the same pages without a word about it.
#pragma once
#include <cstdint>
#include <vector>

#include "yoke/base/check.h"

namespace yoke {

class PagePool {
 public:
  explicit PagePool(std::int64_t pages) {
    for (std::int64_t page = pages; page-- > 0;) free_.push_back(static_cast<std::int32_t>(page));
  }

  std::int64_t free_pages() const { return std::ssize(free_); }

  void take(std::int64_t count, std::vector<std::int32_t>& pages) {
    YOKE_CHECK(count <= free_pages(), "{} pages of {}", count, free_pages());
    for (; count > 0; --count) {
      pages.push_back(free_.back());
      free_.pop_back();
    }
  }
  void give_back(const std::vector<std::int32_t>& pages) { free_.insert(free_.end(), pages.rbegin(), pages.rend()); }

 private:
  std::vector<std::int32_t> free_;
};

}  // namespace yoke
