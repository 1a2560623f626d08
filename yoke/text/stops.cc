#include "yoke/text/stops.h"

#include <algorithm>
#include <utility>

#include "yoke/base/error.h"

namespace yoke::text {

StopMatcher::StopMatcher(std::vector<std::string> stops, std::vector<TokenId> stop_ids)
    : stops_(std::move(stops)), stop_ids_(std::move(stop_ids)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) throw Error(ErrorCode::kInvalid, "a stop text must not be empty");
  }
}

bool StopMatcher::stops_at(TokenId id) {
  if (std::find(stop_ids_.begin(), stop_ids_.end(), id) == stop_ids_.end()) return false;
  stopped_ = true;
  return true;
}

std::size_t StopMatcher::possible_start() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > longest; --size) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, size))) longest = size;
    }
  }
  return longest;
}

std::string StopMatcher::add(std::string_view text) {
  if (stopped()) return {};
  held_ += text;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at < end) {
      end = at;
      matched_ = stop;
      stopped_ = true;
    }
  }
  if (stopped()) {
    held_.resize(end);
    return std::exchange(held_, {});
  }
  std::string certain = held_.substr(0, held_.size() - possible_start());
  held_.erase(0, certain.size());
  return certain;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace yoke::text
