#include "yoke/bench/measure_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "yoke/base/check.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/progress.h"
#include "yoke/bench/exchange.h"
#include "yoke/bench/iteration_trace.h"
#include "yoke/bench/memory_guard.h"
#include "yoke/bench/placement.h"
#include "yoke/bench/timing.h"

namespace yoke::bench {
namespace {

ProgressOptions quiet_progress() {
  ProgressOptions options = default_progress();
  options.style = ProgressStyle::kQuiet;
  return options;
}

class Measurement {
 public:
  Measurement(const BenchContext& context, CollectiveRun& run, const CollectiveHooks& hooks)
      : context_(context), comm_(context.comm), run_(run), hooks_(hooks), options_(run.options) {}

  void measure(const RankFacts& facts) {
    for (const std::string& text :
         gather_texts(context_.control, print_json(to_json(facts), JsonLayout::kOneLine), timeout()))
      run_.ranks.push_back(from_json<RankFacts>(parse_json(text, "a rank's facts")));
    guard_memory();
    if (hooks_.sink) hooks_.sink->begin(run_);
    if (options_.trace) trace_.emplace(context_.control);
    const BenchBuffers buffers(context_, static_cast<std::size_t>(options_.size_max.value),
                               static_cast<std::size_t>(options_.unalign) * sizeof(float));
    const CollectiveTraits& traits = traits_of(options_.kind);
    const bool by_op = traits.reduces || traits.prints_op;
    for (const tensor::DType type : options_.types) {
      for (const comm::ReduceOp op : by_op ? options_.ops : std::vector{comm::ReduceOp::kSum}) {
        for (const int root : roots()) measure_sizes(plan_of(type, op, root), buffers);
      }
    }
    if (trace_) run_.traces = trace_->gather(context_.control, facts.host);
  }

 private:
  Seconds timeout() const { return options_.timeout; }

  void guard_memory() {
    const auto largest = largest_size(run_.ranks);
    if (!largest || options_.size_max.value <= *largest) return;
    options_.size_max.value = *largest;
    options_.size_min = std::min(options_.size_min, options_.size_max);
    run_.reduced_to = *largest;
  }

  std::vector<int> roots() const {
    if (!traits_of(options_.kind).has_root) return {-1};
    if (options_.root >= 0) return {options_.root};
    std::vector<int> all;
    for (int rank = 0; rank < comm_.size(); ++rank) all.push_back(rank);
    return all;
  }

  RowPlan plan_of(tensor::DType type, comm::ReduceOp op, int root) const {
    return {.kind = options_.kind,
            .type = type,
            .op = op,
            .root = root,
            .rank = comm_.rank(),
            .ranks = comm_.size(),
            .bytes = 0,
            .unalign = static_cast<std::size_t>(options_.unalign)};
  }

  void measure_sizes(RowPlan plan, const BenchBuffers& buffers) {
    barrier_until(context_.control, timeout());
    warm_up(plan, buffers);
    const std::vector<std::size_t> sizes = row_sizes(options_);
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
      for (const std::size_t size : sizes) {
        throw_if_interrupted();
        plan.bytes = size;
        add_row(measure_row(plan, buffers));
      }
    }
  }

  // Every power-of-two size once from the least to the largest, before the first row.
  void warm_up(RowPlan plan, const BenchBuffers& buffers) {
    const auto max = static_cast<std::size_t>(options_.size_max.value);
    const auto min = static_cast<std::size_t>(options_.size_min.value);
    for (plan.bytes = min; plan.bytes <= max; plan.bytes = std::max<std::size_t>(16, plan.bytes * 2)) {
      for (int i = 0; i < options_.warmup_iterations; ++i)
        comm_.enqueue(make_operation(plan, buffers, Placement::kOutOfPlace), context_.stream);
      comm_.wait(comm_.record(context_.stream), Deadline::after(timeout()));
    }
  }

  CollectiveRow measure_row(const RowPlan& plan, const BenchBuffers& buffers) {
    const CollectiveShape shape = plan.shape();
    CollectiveRow row{.size = static_cast<std::int64_t>(row_bytes(shape, tensor::size_of(plan.type))),
                      .count = static_cast<std::int64_t>(shape.count),
                      .type = std::string(nccl_name(plan.type)),
                      .op = traits_of(plan.kind).prints_op ? std::string(comm::to_string(plan.op)) : "none",
                      .root = plan.root};
    {
      // One for each row: it is gone from the terminal before the row is printed.
      Progress progress(fmt::format("{} of {}", comm::to_string(plan.kind), yoke::to_string(Bytes{row.size})),
                        2LL * options_.iterations, comm_.rank() == 0 ? default_progress() : quiet_progress());
      row.out_of_place = measure_placement(plan, buffers, Placement::kOutOfPlace, progress);
      row.in_place = measure_placement(plan, buffers, Placement::kInPlace, progress);
      if (hooks_.baseline) row.baseline = measure_baseline(plan, buffers);
    }
    row.time = time_of_day();
    return row;
  }

  PlacementResult measure_placement(const RowPlan& plan, const BenchBuffers& buffers, Placement placement,
                                    Progress& progress) {
    if (options_.checks > 0) fill_data(plan, buffers, placement, 99);
    const comm::Collective operation = make_operation(plan, buffers, placement);
    comm_.enqueue(operation, context_.stream);
    const RankTiming timing = time_operation(context_, operation, options_, [&](int done) {
      progress.update(done + (placement == Placement::kInPlace ? options_.iterations : 0));
    });
    if (trace_) trace_->add(operation, placement, timing, options_);
    PlacementResult result = combine_timings(context_.control, timing, operation, options_);
    if (placement == Placement::kInPlace && !traits_of(plan.kind).in_place) return result;
    result.wrong = check(plan, buffers, placement,
                         [&] { comm_.enqueue(make_operation(plan, buffers, placement), context_.stream); });
    return result;
  }

  BaselineResult measure_baseline(const RowPlan& plan, const BenchBuffers& buffers) {
    const comm::Collective operation = make_operation(plan, buffers, Placement::kOutOfPlace);
    BaselineResult result = time_baseline(context_, operation, hooks_.baseline->run, options_);
    if (hooks_.baseline->checked)
      result.wrong = check(plan, buffers, Placement::kOutOfPlace, [&] { hooks_.baseline->run(operation); });
    return result;
  }

  // Fresh data, one operation, every element looked at; the sum over all ranks.
  template <class Operation>
  std::optional<std::int64_t> check(const RowPlan& plan, const BenchBuffers& buffers, Placement placement,
                                    Operation operation) {
    std::optional<std::int64_t> wrong;
    for (int c = 0; c < options_.checks && wrong.value_or(0) == 0; ++c) {
      fill_data(plan, buffers, placement, ++round_);
      barrier_until(context_.control, timeout());
      operation();
      comm_.wait(comm_.record(context_.stream), Deadline::after(timeout()));
      const auto own = static_cast<double>(count_wrong(plan, buffers, placement, round_));
      double sum = 0;
      for (const auto& one : gather_numbers(context_.control, {own}, timeout())) sum += one[0];
      wrong = static_cast<std::int64_t>(sum);
    }
    return wrong;
  }

  // A run without end keeps its newest rows, and all that were wrong: memory must not grow overnight.
  void forget_old_rows() {
    constexpr std::ptrdiff_t kRowsKept = 10'000;
    if (options_.cycles != 0 || std::ssize(run_.rows) < 2 * kRowsKept) return;
    const auto right = [](const CollectiveRow& row) {
      return row.out_of_place.wrong.value_or(0) == 0 && row.in_place.wrong.value_or(0) == 0;
    };
    run_.rows.erase(std::remove_if(run_.rows.begin(), run_.rows.end() - kRowsKept, right), run_.rows.end() - kRowsKept);
  }

  void add_row(CollectiveRow row) {
    forget_old_rows();
    run_.rows.push_back(std::move(row));
    if (hooks_.sink) hooks_.sink->row(run_, run_.rows.back());
  }

  BenchContext context_;
  comm::Communicator& comm_;
  CollectiveRun& run_;
  const CollectiveHooks& hooks_;
  CollectiveOptions& options_;
  std::uint32_t round_ = 0;
  std::optional<IterationTrace> trace_;
};

void measure_or_throw(const BenchContext& context, CollectiveRun& run, const CollectiveHooks& hooks,
                      const RankFacts& facts) {
  try {
    Measurement(context, run, hooks).measure(facts);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kExhausted, fmt::format("rank {} is out of memory", context.comm.rank()),
                "give a smaller -e");
  }
}

}  // namespace

CollectiveRun run_collective_bench(comm::Communicator& comm, const CollectiveOptions& options, const RankFacts& facts,
                                   const CollectiveHooks& hooks) {
  return run_collective_bench(BenchContext{.comm = comm, .control = comm}, options, facts, hooks);
}

CollectiveRun run_collective_bench(const BenchContext& context, const CollectiveOptions& options,
                                   const RankFacts& facts, const CollectiveHooks& hooks) {
  comm::Communicator& comm = context.comm;
  validate(options, comm.size());
  CollectiveRun run{.options = options, .transport = comm.describe(), .started = time_of_day()};
  if (hooks.baseline) run.baseline = hooks.baseline->name;
  const auto end_by = [&](const Error& error) {
    comm.abort(error);
    context.control.abort(error);
  };
  try {
    measure_or_throw(context, run, hooks, facts);
  } catch (const Error& error) {
    end_by(error);
    if (comm.rank() != 0) throw;
    run.failure = failure_of(error);
  } catch (...) {  // the reader of our table went away, say: nobody is to wait for us
    end_by(Error(ErrorCode::kInterrupted, fmt::format("rank {} stopped measuring", comm.rank())));
    throw;
  }
  run.ended = time_of_day();
  if (hooks.sink) hooks.sink->end(run);
  return run;
}

}  // namespace yoke::bench
