// What is known of the nodes below an engine: their memory, and what passes over their rails. Their supervisors say it
// once a second; the two last reports make rates. Any thread may call.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/job/node_state.h"

namespace yoke::serve {

struct NodeNow {
  struct Rate {
    double sent = 0, received = 0;  // bytes a second
  };
  job::NodeState state;
  std::vector<std::optional<Rate>> rates = {};  // of its interfaces; nothing before the second report
};

class NodeStates {
 public:
  void take(const std::string& node, const job::NodeState& state, Instant now);
  // Nothing where the node has said nothing for some seconds.
  std::optional<NodeNow> of(const std::string& node, Instant now) const;

 private:
  struct Known {
    NodeNow last;
    Instant came{};
  };
  mutable std::mutex mutex_;
  std::map<std::string, Known> nodes_;
};

}  // namespace yoke::serve
