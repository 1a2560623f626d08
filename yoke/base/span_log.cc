#include "yoke/base/span_log.h"

namespace yoke {

void SpanLog::begin_step(std::int32_t step) {
  step_ = step;
  step_begin_ = spans_.size();
  step_dropped_ = dropped_;
}

void SpanLog::add(Span span) {
  if (spans_.size() == room_) {
    ++dropped_;
    return;
  }
  span.step = step_;
  spans_.push_back(span);
}

void SpanLog::drop_step() {
  spans_.resize(step_begin_);
  dropped_ = step_dropped_;
}

void SpanLog::clear() {
  spans_.clear();
  step_begin_ = 0;
  dropped_ = step_dropped_ = 0;
}

}  // namespace yoke
