// A communicator that hands every operation on to another one and keeps how long each took, so that the time of a step
// can be divided into computing, exchanging and waiting. For operations on a CPU stream, which are done when enqueue()
// returns. One thread owns it; the other communicator must outlive it.
#pragma once
#include <vector>

#include "yoke/base/span_log.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {

struct ExchangeTimes {
  double seconds = 0;
  double bytes = 0;
  std::vector<float> each;  // seconds of each operation, in order
};

class TimedCommunicator final : public Communicator {
 public:
  explicit TimedCommunicator(Communicator& inner) : inner_(inner) {}

  const ExchangeTimes& times() const { return times_; }  // since forget_times()
  void forget_times();
  // Each operation from now on is also a span of this log, which outlives this object. `exchange` is the kind of those
  // that are no sends or receives.
  void keep_spans(SpanLog& spans, SpanKind exchange);

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void enqueue(const Collective& operation, tensor::Stream stream) override;
  tensor::Event record(tensor::Stream stream) override { return inner_.record(stream); }
  void wait(tensor::Event event, Deadline deadline) override { inner_.wait(event, deadline); }
  void limit_operations(Seconds limit) override { inner_.limit_operations(limit); }
  void abort(const Error& reason) override { inner_.abort(reason); }
  void rebuild(const spec::Membership& membership, Deadline deadline) override { inner_.rebuild(membership, deadline); }
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override { return inner_.split(ranks); }
  std::string describe() const override { return inner_.describe(); }
  std::vector<spec::RailUse> rail_uses() const override { return inner_.rail_uses(); }

 private:
  Communicator& inner_;
  ExchangeTimes times_;
  SpanLog* spans_ = nullptr;
  SpanKind exchange_kind_ = SpanKind::kExchange;
};

}  // namespace yoke::comm
