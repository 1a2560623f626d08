#include "yoke/engine/step_trace.h"

#include "yoke/base/json.h"
#include "yoke/engine/agreement.h"

namespace yoke::engine {

void StepTrace::join(ops::TimedBackend& ops, comm::TimedCommunicator& exchange, comm::Communicator& control) {
  plain_control_ = &control;
  if (keeps_ == Keeps::kNothing) return;
  spans_.clear();
  clock_.clear();
  stage_.reset();
  step_ = 0;
  ops.keep_spans(&spans_);
  exchange.keep_spans(spans_, SpanKind::kExchange);
  control_.emplace(control);
  control_->keep_spans(spans_, SpanKind::kExchange);
  clock_.push_back(comm::compare_clock(control));
}

comm::Communicator& StepTrace::join_stage(comm::Communicator& group) {
  if (keeps_ == Keeps::kNothing) return group;
  stage_.emplace(group);
  stage_->keep_spans(spans_, SpanKind::kGroupExchange);
  return *stage_;
}

void StepTrace::begin_step() {
  if (keeps_ == Keeps::kNothing) return;
  control_->forget_times();
  if (stage_) stage_->forget_times();
  spans_.begin_step(++step_);
  begin_ = real_clock().now();
}

void StepTrace::end_step(const StepTokens& own, const StepTokens& all) {
  if (keeps_ == Keeps::kNothing || all.prompt + all.answers == 0) return spans_.drop_step();
  const char* name = own.prompt > 0 ? "step of a prompt and answers" : "step of answers";
  if (own.answers == 0) name = own.prompt > 0 ? "step of a prompt" : "step of other stages";
  spans_.add({.kind = SpanKind::kStep, .name = name, .begin = begin_, .end = real_clock().now()});
}

std::vector<spec::RankTrace> StepTrace::gather(const std::string& node, const models::Mesh& mesh) {
  std::vector<spec::RankTrace> traces;
  if (keeps_ == Keeps::kNothing) return traces;
  spec::RankTrace own = spec::trace_of(spans_);
  clock_.push_back(comm::compare_clock(*plain_control_));
  own.rank = plain_control_->rank();
  own.node = node;
  own.stage = mesh.stage;
  own.first_layer = mesh.stages > 1 ? mesh.layers.begin : 0;
  own.clock = clock_;
  for (const std::string& page : gather_texts(*plain_control_, print_json(to_json(own), JsonLayout::kOneLine))) {
    traces.push_back(from_json<spec::RankTrace>(parse_json(page, "the trace of a rank")));
  }
  return traces;
}

}  // namespace yoke::engine
