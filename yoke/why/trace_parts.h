// Pure: the spans of all ranks on one clock, divided into computing, waiting and transfer, by layer.
//
// An exchange begins for all when the last rank has come: until then a rank waits, from then on data moves. Where one
// rank's data goes to all others, and in a receive, the others wait for that rank. Where waiting ends is as certain as
// the clocks are compared (RankParts::clock_error).
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "yoke/spec/rank_trace.h"

namespace yoke::why {

enum class PartKind { kStep, kLayer, kCompute, kExchange, kWaiting, kTransfer };
constexpr auto enum_names(PartKind) {
  return std::array{std::pair{"step", PartKind::kStep},       std::pair{"layer", PartKind::kLayer},
                    std::pair{"compute", PartKind::kCompute}, std::pair{"exchange", PartKind::kExchange},
                    std::pair{"waiting", PartKind::kWaiting}, std::pair{"transfer", PartKind::kTransfer}};
}

// Microseconds of the common clock, from the first span of all. kWaiting and kTransfer lie inside of a kExchange,
// these and kCompute inside of a kLayer or a kStep.
struct TracePart {
  PartKind kind = PartKind::kCompute;
  std::string name;
  std::int32_t step = 0;
  std::int64_t layer = -1;  // -1: none
  double begin = 0, duration = 0;
  double bytes = 0;
};

// Seconds.
struct PartSums {
  double steps = 0, compute = 0, waiting = 0, transfer = 0;
  double rest() const { return std::max(0.0, steps - compute - waiting - transfer); }
};

struct RankParts {
  int rank = 0;
  std::string node;
  double clock_error = 0;  // seconds
  std::int64_t dropped = 0;
  std::vector<TracePart> parts;  // what contains others comes first
  PartSums sums;
};

std::vector<RankParts> divide_traces(const std::vector<spec::RankTrace>& traces);

}  // namespace yoke::why
