#include "yoke/watch/node_past.h"

#include <algorithm>

namespace yoke::watch {
namespace {

constexpr std::size_t kOffsets = 5;
constexpr std::size_t kMaxEngines = 32;
constexpr std::size_t kMaxRestarts = 100;

constexpr double kAway = 2.5;  // seconds: less is a look that got no answer

// A counter that is lower than before, or an engine that was away and has made no token yet.
bool is_new_start(const EnginePast& past, const EngineSample& engine, double time) {
  const Total& now = engine.generated_tokens;
  if (past.generated_tokens && now && *now < *past.generated_tokens) return true;
  return time - past.seen > kAway && now.value_or(0) == 0;
}

}  // namespace

void NodePast::take(double time, const Sample& sample) {
  offsets_.push_back(sample.time - time);
  if (offsets_.size() > kOffsets) offsets_.pop_front();
  for (const EngineSample& engine : sample.engines) {
    const auto [entry, is_first] = engines_.try_emplace(engine.port);
    EnginePast& past = entry->second;
    if (!is_first && is_new_start(past, engine, time)) past.restarts.push_back(time);
    if (past.restarts.size() > kMaxRestarts) past.restarts.pop_front();
    past.kind = engine.kind;
    past.generated_tokens = engine.generated_tokens;
    past.seen = time;
  }
  if (engines_.size() > kMaxEngines) engines_.clear();
}

std::optional<Seconds> NodePast::clock_offset() const {
  if (offsets_.size() < kOffsets) return std::nullopt;
  return Seconds{*std::max_element(offsets_.begin(), offsets_.end())};  // of the sample that was least late
}

int NodePast::restarts(int port, double now) const {
  const auto found = engines_.find(port);
  if (found == engines_.end()) return 0;
  return static_cast<int>(
      std::ranges::count_if(found->second.restarts, [&](double at) { return now - at < kRestartWindow.value; }));
}

}  // namespace yoke::watch
