#include "yoke/bench/iteration_trace.h"

#include <fmt/format.h>

#include "yoke/base/json.h"
#include "yoke/comm/rank_clock.h"
#include "yoke/engine/agreement.h"

namespace yoke::bench {

IterationTrace::IterationTrace(comm::Communicator& control) { clock_.push_back(comm::compare_clock(control)); }

void IterationTrace::add(const comm::Collective& operation, Placement placement, const RankTiming& timing,
                         const CollectiveOptions& options) {
  const std::size_t bytes = operation.count * tensor::size_of(operation.type);
  const std::string& name = names_.emplace_back(fmt::format("{} of {}{}", comm::to_string(operation.kind),
                                                            to_string(Bytes{static_cast<std::int64_t>(bytes)}),
                                                            placement == Placement::kInPlace ? ", in place" : ""));
  const bool from_root =
      operation.kind == comm::CollectiveKind::kBroadcast || operation.kind == comm::CollectiveKind::kScatter;
  for (std::size_t i = 0; i < timing.begins.size(); ++i) {
    Span span{.kind = SpanKind::kExchange,
              .name = comm::to_string(operation.kind),
              .peer = from_root ? operation.root : -1,
              .begin = timing.start + to_chrono(Seconds{timing.begins[i]}),
              .end = timing.start + to_chrono(Seconds{timing.ends[i]}),
              .bytes = static_cast<double>(bytes) * options.aggregate};
    spans_.begin_step(++step_);
    spans_.add(span);
    span.kind = SpanKind::kStep;
    span.name = name;
    spans_.add(span);
  }
}

std::vector<spec::RankTrace> IterationTrace::gather(comm::Communicator& control, const std::string& node) {
  clock_.push_back(comm::compare_clock(control));
  spec::RankTrace trace = spec::trace_of(spans_);
  trace.rank = control.rank();
  trace.node = node;
  trace.clock = clock_;
  std::vector<spec::RankTrace> traces;
  for (const std::string& text : engine::gather_texts(control, print_json(to_json(trace), JsonLayout::kOneLine))) {
    traces.push_back(from_json<spec::RankTrace>(parse_json(text, "the trace of a rank")));
  }
  return traces;
}

}  // namespace yoke::bench
