#include "yoke/bench/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/report/table.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, RecoveryOptions& options) {
  visit.required("rounds", options.rounds);
  visit.required("size", options.size);
}
template <class Visitor>
void visit_fields(Visitor& visit, RecoveryResult& result) {
  visit.required("seconds", result.seconds);
  visit.required("victims", result.victims);
}

namespace {

constexpr int kStepsPerRound = 100;

// One rank's work: steps that all ranks count alike.
class Work {
 public:
  Work(World& world, const RecoveryOptions& options)
      : world_(world),
        options_(options),
        values_(std::max<std::size_t>(1, static_cast<std::size_t>(options.size.value) / sizeof(std::int32_t))),
        seconds_(static_cast<std::size_t>(options.rounds), -1) {}

  RecoveryResult run() {
    while (true) {
      try {
        agree_on_step();
        work();
        return result();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kInternal) throw;  // a wrong result is not to be recovered from
        world_.recover(error);
      }
    }
  }

 private:
  int victim_of(int round) const { return (round + 1) % world_.comm().size(); }

  // Survivors may be a step apart, and a newcomer knows nothing: all go on from the last step that anybody finished.
  void agree_on_step() { all_reduce(world_.comm(), &step_, 1, DType::kI32, ReduceOp::kMax); }

  void work() {
    const int last = (options_.rounds + 1) * kStepsPerRound;
    while (step_ < last) {
      all_reduce_rightly();
      const Instant now = real_clock().now();
      if (last_right_ && was_rebuilt_) {
        seconds_[static_cast<std::size_t>((step_ - 1) / kStepsPerRound)] =
            static_cast<float>(to_seconds(now - *last_right_).value);
      }
      was_rebuilt_ = false;
      last_right_ = now;
      ++step_;
      const int round = step_ / kStepsPerRound - 1;
      const bool round_begins = step_ % kStepsPerRound == 0 && round < options_.rounds;
      if (round_begins && world_.place().rank == victim_of(round)) raise(SIGKILL);
      was_rebuilt_ = round_begins;  // whatever comes next comes after a death
      if (step_ % kStepsPerRound == kStepsPerRound / 2) share_times();
    }
  }

  void all_reduce_rightly() {
    const int size = world_.comm().size();
    std::iota(values_.begin(), values_.end(), world_.place().rank + step_);
    all_reduce(world_.comm(), values_.data(), values_.size(), DType::kI32);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const int expected = size * (static_cast<int>(i) + step_) + size * (size - 1) / 2;
      if (values_[i] == expected) continue;
      throw Error(ErrorCode::kInternal,
                  fmt::format("step {}: element {} is {} instead of {}", step_, i, values_[i], expected));
    }
  }

  // Before the one who measured is killed itself.
  void share_times() { all_reduce(world_.comm(), seconds_.data(), seconds_.size(), DType::kF32, ReduceOp::kMax); }

  RecoveryResult result() const {
    RecoveryResult result{.seconds = {seconds_.begin(), seconds_.end()}};
    for (int round = 0; round < options_.rounds; ++round) result.victims.push_back(victim_of(round));
    return result;
  }

  World& world_;
  RecoveryOptions options_;
  std::vector<std::int32_t> values_;
  std::vector<float> seconds_;  // by round; below 0: not known here
  std::int32_t step_ = 0;
  std::optional<Instant> last_right_;
  bool was_rebuilt_ = false;
};

}  // namespace

RecoveryResult run_recovery(World& world, const RecoveryOptions& options) { return Work(world, options).run(); }

std::string recovery_text(const RecoveryResult& result) {
  Table table{.columns = {{.header = "round", .align = TextAlign::kRight},
                          {.header = "killed", .align = TextAlign::kRight},
                          {.header = "next right result after", .align = TextAlign::kRight}}};
  for (std::size_t i = 0; i < result.seconds.size(); ++i) {
    table.rows.push_back(
        {fmt::format("{}", i + 1), fmt::format("rank {}", result.victims[i]), to_string(Seconds{result.seconds[i]})});
  }
  const SampleStats stats = summarize(result.seconds);
  return render_text(table) +
         fmt::format("Median {}, longest {}.\n", to_string(Seconds{stats.p50}), to_string(Seconds{stats.most}));
}

Document to_json(const RecoveryResult& result) { return to_document(result); }
RecoveryResult recovery_from_json(const Document& document) { return from_document<RecoveryResult>(document); }
Document to_json(const RecoveryOptions& options) { return to_document(options); }
RecoveryOptions recovery_options_from_json(const Document& document) {
  return from_document<RecoveryOptions>(document);
}

}  // namespace yoke
