#include "yoke/comm/timed.h"

#include "yoke/comm/operation.h"

namespace yoke::comm {

void TimedCommunicator::enqueue(const Collective& operation, tensor::Stream stream) {
  const Instant start = real_clock().now();
  inner_.enqueue(operation, stream);
  const Instant end = real_clock().now();
  const double took = to_seconds(end - start).value;
  const auto bytes = static_cast<double>(operation.count * tensor::size_of(operation.type));
  times_.seconds += took;
  times_.bytes += bytes;
  times_.each.push_back(static_cast<float>(took));
  if (spans_ == nullptr) return;
  Span span{.kind = exchange_kind_, .name = to_string(operation.kind), .begin = start, .end = end, .bytes = bytes};
  if (operation.kind == CollectiveKind::kSend) span.kind = SpanKind::kSend;
  if (operation.kind == CollectiveKind::kReceive) span.kind = SpanKind::kReceive;
  // Of these one rank's data goes to the others.
  if (is_point_to_point(operation.kind) || operation.kind == CollectiveKind::kBroadcast ||
      operation.kind == CollectiveKind::kScatter) {
    span.peer = operation.root;
  }
  spans_->add(span);
}

void TimedCommunicator::keep_spans(SpanLog& spans, SpanKind exchange) {
  spans_ = &spans;
  exchange_kind_ = exchange;
}

void TimedCommunicator::forget_times() {
  times_.seconds = times_.bytes = 0;
  times_.each.clear();  // keeps its memory: a step allocates nothing
}

}  // namespace yoke::comm
