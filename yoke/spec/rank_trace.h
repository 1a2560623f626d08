// What one rank did and when, by its own clock, and how that clock compares with rank 0's: plain data with a JSON round
// trip. Ranks make one each (comm/rank_clock.h), and rank 0 collects them. why/trace_parts.h divides them into
// computing, waiting and transfer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/span_log.h"

namespace yoke::spec {

// At one moment of a rank's clock: by how much rank 0's clock is ahead. All in nanoseconds.
struct ClockMark {
  std::int64_t at = 0;
  std::int64_t offset = 0;
  std::int64_t error = 0;  // half of the round trip that gave the offset: it cannot be off by more
};

struct TraceSpan {
  SpanKind kind = SpanKind::kCompute;
  std::int32_t name = 0;  // place in RankTrace::names
  std::int32_t step = 0;
  std::int32_t peer = -1;
  std::int64_t begin = 0;     // nanoseconds of the rank's clock
  std::int64_t duration = 0;  // nanoseconds
  double bytes = 0;
  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

struct RankTrace {
  int rank = 0;
  std::string node;
  int stage = 0;                 // of a pipeline
  std::int64_t first_layer = 0;  // of the model, that this rank has
  std::vector<ClockMark> clock;  // in the order of time; none: rank 0's own clock
  std::int64_t dropped = 0;      // spans that found no room
  std::vector<std::string> names;
  std::vector<TraceSpan> spans;  // in the order in which they ended

  // A moment of the rank's clock on rank 0's clock, in nanoseconds: between two marks the offset changes evenly.
  double common_time(std::int64_t at) const;
  std::int64_t clock_error() const;  // the largest of all marks
};

// The spans of a log; the rest of the trace is for the caller to fill.
RankTrace trace_of(const SpanLog& log);
std::int64_t nanoseconds(Instant instant);

Document to_json(const RankTrace& trace);
void from_json(const Document& document, RankTrace& trace);

}  // namespace yoke::spec
