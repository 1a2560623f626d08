// What one sample of a node cannot tell: how its clock runs against the head's, and how often its engines were started
// again.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "yoke/base/units.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

inline constexpr Seconds kRestartWindow{600};

struct EnginePast {
  std::string kind;
  Total generated_tokens;
  double seen = 0;              // when it last answered
  std::deque<double> restarts;  // when it was first seen again
};

class NodePast {
 public:
  // `time` is the head's, when the sample came.
  void take(double time, const Sample& sample);
  // The node's clock less the head's. Nothing before there are some samples: one may have been late.
  std::optional<Seconds> clock_offset() const;
  const std::map<int, EnginePast>& engines() const { return engines_; }  // by port
  // Within the window before this time.
  int restarts(int port, double now) const;

 private:
  std::deque<double> offsets_;
  std::map<int, EnginePast> engines_;
};

}  // namespace yoke::watch
