#include "yoke/serve/node_states.h"

#include <algorithm>

namespace yoke::serve {
namespace {

constexpr Seconds kOld{5};  // reports come once a second

std::optional<double> rate(std::optional<std::int64_t> before, std::optional<std::int64_t> after, double seconds) {
  const bool has_started_again = before && after && *after < *before;
  if (!before || !after || has_started_again || seconds <= 0) return std::nullopt;
  return static_cast<double>(*after - *before) / seconds;
}

std::optional<NodeNow::Rate> rate_between(const job::NodeState& before, const job::NodeState& after,
                                          const job::InterfaceState& interface) {
  const auto same =
      std::ranges::find_if(before.interfaces, [&](const auto& one) { return one.name == interface.name; });
  if (same == before.interfaces.end()) return std::nullopt;
  const double seconds = after.time - before.time;
  const auto sent = rate(same->sent_bytes, interface.sent_bytes, seconds);
  const auto received = rate(same->received_bytes, interface.received_bytes, seconds);
  return sent && received ? std::optional(NodeNow::Rate{*sent, *received}) : std::nullopt;
}

}  // namespace

void NodeStates::take(const std::string& node, const job::NodeState& state, Instant now) {
  const std::lock_guard lock(mutex_);
  Known& known = nodes_[node];
  NodeNow next{.state = state};
  for (const job::InterfaceState& interface : state.interfaces) {
    next.rates.push_back(rate_between(known.last.state, state, interface));
  }
  known = {std::move(next), now};
}

std::optional<NodeNow> NodeStates::of(const std::string& node, Instant now) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || to_seconds(now - found->second.came) > kOld) return std::nullopt;
  return found->second.last;
}

}  // namespace yoke::serve
