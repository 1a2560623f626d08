// What one rank of an engine does and when, kept where 'yoke run --trace' asks for it: every operation, every exchange
// and every step. Ranks number their steps alike, so that rank 0 can put them beside each other. One thread owns it.
//
//   trace.join(ops, exchange, control);     // after each group is made: what was before is forgotten
//   trace.begin_step();                     // before a step's plan is shared
//   trace.end_step(own, all);               // steps of nothing leave nothing
//   trace.gather(node, mesh);               // on all ranks
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/comm/rank_clock.h"
#include "yoke/comm/timed.h"
#include "yoke/engine/step_book.h"
#include "yoke/models/parallel.h"
#include "yoke/ops/timed_backend.h"

namespace yoke::engine {

class StepTrace {
 public:
  // A step of a model of 32 layers has about 500 spans of 64 bytes each: the first 500 steps are kept.
  static constexpr std::size_t kRoom = 250'000;

  enum class Keeps { kNothing, kSpans };
  explicit StepTrace(Keeps keeps) : keeps_(keeps), spans_(keeps == Keeps::kSpans ? kRoom : 0) {}

  // The same call on all ranks. All three outlive the next call, or this object.
  void join(ops::TimedBackend& ops, comm::TimedCommunicator& exchange, comm::Communicator& control);
  // The group of this stage, where it is not the world.
  comm::Communicator& join_stage(comm::Communicator& group);
  // Carries what the control of join() does, and keeps when.
  comm::Communicator& control() { return control_ ? *control_ : *plain_control_; }

  void begin_step();
  // What this stage computed, and what all stages together did.
  void end_step(const StepTokens& own, const StepTokens& all);

  // The same call on all ranks: compares the clocks once more. The traces of all ranks, where they are kept.
  std::vector<spec::RankTrace> gather(const std::string& node, const models::Mesh& mesh);

 private:
  Keeps keeps_;
  SpanLog spans_;
  comm::Communicator* plain_control_ = nullptr;  // whose exchanges are not kept
  std::optional<comm::TimedCommunicator> control_, stage_;
  std::vector<spec::ClockMark> clock_;
  std::int32_t step_ = 0;
  Instant begin_{};
};

}  // namespace yoke::engine
