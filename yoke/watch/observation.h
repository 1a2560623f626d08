// What `yoke watch` learns, one after the other: a sample of a node, its facts, or why it cannot be seen. It comes from
// the nodes themselves (node_streams.h), from a record (record.h), or from the watch of a lab's head node.
#pragma once
#include <optional>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/machine.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

struct NodeProblem {
  std::string message, hint;
  bool needs_login = false;  // ssh asks for a password or a host key
  friend bool operator==(const NodeProblem&, const NodeProblem&) = default;
};

struct Observation {
  std::size_t node = 0;  // its place in the cluster file
  double time = 0;       // seconds since 1970, by the head's clock, which does not jump here
  std::optional<Sample> sample = {};
  std::optional<spec::Machine> machine = {};
  std::optional<NodeProblem> problem = {};
};

// Where observations come from.
class ObservationSource {
 public:
  virtual ~ObservationSource() = default;
  // Nothing at the deadline, and at the end.
  virtual std::optional<Observation> next(Deadline deadline) = 0;
  virtual bool at_end() const = 0;
  virtual double now() const = 0;  // the time as observations have it
};

// What a watch is about.
struct WatchPlan {
  spec::Cluster cluster;
  Seconds interval{1};
};

}  // namespace yoke::watch
