#include "yoke/bench/timing.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "yoke/bench/exchange.h"
#include "yoke/cuda/driver.h"

namespace yoke::bench {
namespace {

double since(Instant start) { return to_seconds(real_clock().now() - start).value; }

double over_ranks(const std::vector<double>& times, RankAverage average) {
  switch (average) {
    case RankAverage::kRank0:
      return times.front();
    case RankAverage::kMin:
      return *std::min_element(times.begin(), times.end());
    case RankAverage::kMax:
      return *std::max_element(times.begin(), times.end());
    case RankAverage::kMean:
      break;
  }
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

// The slowest rank of each iteration.
std::vector<double> slowest(const std::vector<std::vector<double>>& by_rank, std::size_t skip) {
  std::vector<double> slowest;
  for (std::size_t i = skip; i < by_rank.front().size(); ++i) {
    double time = 0;
    for (const auto& times : by_rank) time = std::max(time, times[i]);
    slowest.push_back(time);
  }
  return slowest;
}

// By how much each rank comes after the first one to an iteration, in the median. Clocks of different machines are set
// to zero at the barrier; a rank may leave that a moment later than another, which is the error of this number.
std::vector<double> lateness(const std::vector<std::vector<double>>& begins) {
  std::vector<double> late;
  const std::size_t iterations = begins.front().size();
  for (const auto& own : begins) {
    std::vector<double> gaps;
    for (std::size_t i = 0; i < iterations; ++i) {
      double first = own[i];
      for (const auto& other : begins) first = std::min(first, other[i]);
      gaps.push_back(own[i] - first);
    }
    late.push_back(summarize(gaps).p50);
  }
  return late;
}

// Without waits in between, the host's clock tells when operations were handed over, not when they were done: a GPU's
// own clock does, at the end of each iteration. On processors they are done when they were handed over.
class DeviceClock {
 public:
  DeviceClock(const BenchContext& context, const CollectiveOptions& options) : stream_(context.stream) {
    if (!context.device || options.blocking != Blocking::kNone) return;
    for (int i = 0; i <= options.iterations; ++i) ends_.emplace_back(*context.device, cuda::CudaEventUse::kTime);
  }
  // Before the first iteration, and behind each.
  void mark() {
    if (next_ < ends_.size()) ends_[next_++].record(stream_);
  }
  // Once all is done: when each iteration really began and ended.
  void correct(RankTiming& timing) const {
    if (ends_.empty()) return;
    const double start = timing.begins.front();
    for (std::size_t i = 0; i < timing.ends.size(); ++i) {
      timing.begins[i] = start + cuda::seconds_between(ends_[0], ends_[i]);
      timing.ends[i] = start + cuda::seconds_between(ends_[0], ends_[i + 1]);
    }
  }

 private:
  tensor::Stream stream_;
  std::deque<cuda::CudaEvent> ends_;
  std::size_t next_ = 0;
};

}  // namespace

RankTiming time_operation(const BenchContext& context, const comm::Collective& operation,
                          const CollectiveOptions& options, const std::function<void(int done)>& on_slow) {
  constexpr double kSlow = 0.02;
  RankTiming timing;
  const auto iterations = static_cast<std::size_t>(options.iterations);
  timing.begins.reserve(iterations);
  timing.ends.reserve(iterations);
  const auto wait = [&] { context.comm.wait(context.comm.record(context.stream), Deadline::after(options.timeout)); };
  DeviceClock clock(context, options);
  barrier_until(context.control, options.timeout);
  const Instant start = timing.start = real_clock().now();
  double outside = 0;  // in barriers that do not count
  clock.mark();
  for (std::size_t i = 0; i < iterations; ++i) {
    timing.begins.push_back(since(start));
    for (int m = 0; m < options.aggregate; ++m) context.comm.enqueue(operation, context.stream);
    clock.mark();
    if (options.blocking != Blocking::kNone) wait();
    timing.ends.push_back(since(start));
    if (on_slow && timing.ends.back() - timing.begins.back() > kSlow) on_slow(static_cast<int>(i + 1));
    if (options.blocking == Blocking::kWaitAndBarrier || options.blocking == Blocking::kWaitBarrierOutside) {
      barrier_until(context.control, options.timeout);
      if (options.blocking == Blocking::kWaitBarrierOutside) outside += since(start) - timing.ends.back();
    }
  }
  timing.enqueued = since(start) - outside;
  wait();
  timing.total = since(start) - outside;
  clock.correct(timing);
  return timing;
}

PlacementResult combine_timings(comm::Communicator& control, const RankTiming& own, const comm::Collective& operation,
                                const CollectiveOptions& options) {
  const double operations = static_cast<double>(options.iterations) * options.aggregate;
  std::vector<double> sent = {own.total / operations, own.enqueued / operations};
  sent.insert(sent.end(), own.begins.begin(), own.begins.end());
  sent.insert(sent.end(), own.ends.begin(), own.ends.end());
  const auto lists = gather_numbers(control, sent, options.timeout);

  constexpr double kMicro = 1e6;
  PlacementResult result;
  std::vector<double> cpu_times;
  std::vector<std::vector<double>> begins;
  const auto iterations = static_cast<std::ptrdiff_t>(own.begins.size());
  for (const auto& list : lists) {
    result.rank_times.push_back(list[0] * kMicro);
    cpu_times.push_back(list[1] * kMicro);
    begins.emplace_back(list.begin() + 2, list.begin() + 2 + iterations);
    std::vector<double>& times = result.iterations.emplace_back();
    for (std::ptrdiff_t i = 2; i < 2 + iterations; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double time = list[at + static_cast<std::size_t>(iterations)] - list[at];
      times.push_back(time / options.aggregate * kMicro);
    }
  }
  result.time = over_ranks(result.rank_times, options.average);
  result.cpu_time = over_ranks(cpu_times, options.average);
  result.stats = summarize(slowest(result.iterations, static_cast<std::size_t>(options.per_iteration_skip)));
  for (const double late : lateness(begins)) result.rank_late.push_back(late * kMicro);
  const auto last = std::max_element(result.rank_late.begin(), result.rank_late.end());
  result.straggler = {.rank = static_cast<int>(last - result.rank_late.begin()), .late = *last};
  const Bandwidth bandwidth = bandwidth_of(operation.kind, operation.count, tensor::size_of(operation.type),
                                           control.size(), result.time / kMicro);
  result.algorithm_bandwidth = bandwidth.algorithm;
  result.bus_bandwidth = bandwidth.bus;
  return result;
}

BaselineResult time_baseline(const BenchContext& context, const comm::Collective& operation,
                             const std::function<void(const comm::Collective&)>& theirs,
                             const CollectiveOptions& options) {
  const auto ours = [&](const comm::Collective& one) {
    context.comm.enqueue(one, context.stream);
    context.comm.wait(context.comm.record(context.stream), Deadline::after(options.timeout));
  };
  const auto timed = [&](const std::function<void(const comm::Collective&)>& run, int times) {
    barrier_until(context.control, options.timeout);
    const Instant start = real_clock().now();
    for (int i = 0; i < times; ++i) run(operation);
    return since(start) / times;
  };
  // A single short operation would be timed together with how the ranks left the barrier; a batch of them is not.
  double slowest_rank = 0;
  for (const auto& own : gather_numbers(context.control, {std::max(timed(ours, 1), timed(theirs, 1))}, options.timeout))
    slowest_rank = std::max(slowest_rank, own[0]);
  constexpr double kBatchTime = 2e-3;
  const int batch = static_cast<int>(std::clamp(kBatchTime / slowest_rank, 1.0, 100.0));
  std::vector<double> ours_times, theirs_times;
  for (int i = 0; i < options.iterations; ++i) {
    ours_times.push_back(timed(ours, batch));
    theirs_times.push_back(timed(theirs, batch));
  }
  constexpr double kMicro = 1e6;
  const auto median = [&](const std::vector<double>& own) {
    return summarize(slowest(gather_numbers(context.control, own, options.timeout), 0)).p50 * kMicro;
  };
  const double ours_median = median(ours_times);
  return {.ours = ours_median, .theirs = median(theirs_times)};
}

}  // namespace yoke::bench
