// What one thread did and when, for traces: intervals of this machine's monotonic clock, in memory that is taken before
// the first one. What finds no room is counted, not kept. One thread owns it.
//
//   SpanLog log(100'000);
//   log.begin_step(7);
//   log.add({.kind = SpanKind::kCompute, .name = "attention", .begin = start, .end = real_clock().now()});
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "yoke/base/clock.h"

namespace yoke {

enum class SpanKind : std::uint8_t {
  kStep,           // all of a step, or of an iteration
  kCompute,        // on this rank alone
  kExchange,       // with all ranks: it ends when the last one has come
  kGroupExchange,  // the same with the ranks of the same stage
  kSend,           // to one rank
  kReceive,        // from one rank
};

struct Span {
  SpanKind kind = SpanKind::kCompute;
  std::string_view name;   // of static storage, or older than the log
  std::int32_t step = 0;   // set by the log
  std::int32_t peer = -1;  // of kSend and kReceive; of an exchange the rank whose data all others get; -1: none
  Instant begin{}, end{};
  double bytes = 0;
};

class SpanLog {
 public:
  explicit SpanLog(std::size_t room) : room_(room) { spans_.reserve(room); }

  // What follows belongs to this step.
  void begin_step(std::int32_t step);
  void add(Span span);
  void drop_step();  // nothing of the step that was begun last is kept
  void clear();

  const std::vector<Span>& spans() const { return spans_; }
  std::int64_t dropped() const { return dropped_; }

 private:
  std::size_t room_;
  std::vector<Span> spans_;
  std::int32_t step_ = 0;
  std::size_t step_begin_ = 0;  // how many spans there were when it began
  std::int64_t dropped_ = 0, step_dropped_ = 0;
};

}  // namespace yoke
