#include "yoke/bench/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/bench/memory_guard.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/rank/start.h"
#include "yoke/report/table.h"

namespace yoke::bench {

template <class Visitor>
void visit_fields(Visitor& visit, RecoveryOptions& options) {
  visit.required("rounds", options.rounds);
  visit.required("size", options.size);
}
template <class Visitor>
void visit_fields(Visitor& visit, RecoveryResult& result) {
  visit.required("seconds", result.seconds);
  visit.required("victims", result.victims);
  visit.optional("size_max", result.size_max);
}

namespace {

constexpr const char* kRecoveryKind = "recovery";
constexpr int kStepsPerRound = 100;

// One rank's work: steps that all ranks count alike.
class Work {
 public:
  Work(rank::World& world, const RecoveryOptions& options)
      : world_(world), options_(options), seconds_(static_cast<std::size_t>(options.rounds), -1) {}

  RecoveryResult run() {
    while (true) {
      try {
        agree();
        if (options_.size > size_max_) return {.seconds = {}, .victims = {}, .size_max = size_max_};
        values_.resize(std::max<std::size_t>(1, static_cast<std::size_t>(options_.size.value) / sizeof(std::int32_t)));
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

  // What the memory of this rank's node has room for; before the buffer is there, which a survivor has already.
  Bytes find_size_max() const {
    const job::RankPlace& place = world_.place();
    const std::vector<RankFacts> neighbours(static_cast<std::size_t>(place.local_size),
                                            facts_of_this_process(place.local_rank));
    return {largest_size(neighbours).value_or(INT64_MAX)};
  }

  // Survivors may be a step apart, and a newcomer knows nothing: all go on from the last step that anybody finished.
  // The least memory of all counts, in MiB, and once they have begun there is enough.
  void agree() {
    constexpr std::int64_t kUnit = 1 << 20;
    const auto room = static_cast<std::int32_t>(std::min<std::int64_t>(size_max_.value / kUnit, INT32_MAX));
    std::array<std::int32_t, 2> said = {step_, -room};
    comm::all_reduce(world_.comm(), said.data(), said.size(), tensor::DType::kI32, comm::ReduceOp::kMax);
    step_ = said[0];
    size_max_ = step_ == 0 ? Bytes{-said[1] * kUnit} : options_.size;
  }

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

  // Small enough that the sum over all ranks fits, however large the buffer.
  std::int32_t value_at(std::size_t i) const { return static_cast<std::int32_t>(i % 65'536) + step_; }

  void all_reduce_rightly() {
    const int size = world_.comm().size();
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = value_at(i) + world_.place().rank;
    comm::all_reduce(world_.comm(), values_.data(), values_.size(), tensor::DType::kI32);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const int expected = size * value_at(i) + size * (size - 1) / 2;
      if (values_[i] == expected) continue;
      throw Error(ErrorCode::kInternal,
                  fmt::format("step {}: element {} is {} instead of {}", step_, i, values_[i], expected));
    }
  }

  // Before the one who measured is killed itself.
  void share_times() {
    comm::all_reduce(world_.comm(), seconds_.data(), seconds_.size(), tensor::DType::kF32, comm::ReduceOp::kMax);
  }

  RecoveryResult result() const {
    RecoveryResult result{.seconds = {seconds_.begin(), seconds_.end()}};
    for (int round = 0; round < options_.rounds; ++round) result.victims.push_back(victim_of(round));
    return result;
  }

  rank::World& world_;
  RecoveryOptions options_;
  Bytes size_max_ = find_size_max();
  std::vector<std::int32_t> values_;
  std::vector<float> seconds_;  // by round; below 0: not known here
  std::int32_t step_ = 0;
  std::optional<Instant> last_right_;
  bool was_rebuilt_ = false;
};

void run_recovery_rank(const job::RankPlace& place, const Document& task) {
  const auto world = rank::join_world(place, {});
  const RecoveryResult result = run_recovery(*world, from_json<RecoveryOptions>(task));
  if (place.rank == 0) fmt::print("{}\n", print_json(to_json(result), JsonLayout::kOneLine));
}

}  // namespace

RecoveryResult run_recovery(rank::World& world, const RecoveryOptions& options) { return Work(world, options).run(); }

RecoveryResult measure_recovery(const RecoveryOptions& options, int ranks,
                                const std::optional<spec::Cluster>& cluster) {
  std::string written;
  rank::Ranks::start({.name = "bench-recovery",
                      .task = {.kind = kRecoveryKind, .content = to_json(options)},
                      .ranks = ranks,
                      .cluster = cluster,
                      .policy = job::JobPolicy::kRestart,
                      .restarts_max = options.rounds,
                      .on_output = [&](std::string_view bytes) { written += bytes; }})
      ->wait();
  const RecoveryResult result = from_json<RecoveryResult>(parse_json(written, "what rank 0 wrote"));
  if (result.size_max)
    throw Error(ErrorCode::kExhausted,
                fmt::format("the nodes have no memory for buffers of {}", yoke::to_string(options.size)),
                fmt::format("--size {}M is the most", result.size_max->value >> 20));
  return result;
}

rank::RankKind recovery_rank_kind() {
  return {.name = kRecoveryKind, .started_by = "yoke bench recovery", .run = run_recovery_rank};
}

std::string recovery_text(const RecoveryResult& result) {
  report::Table table{.columns = {{.header = "round", .align = report::TextAlign::kRight},
                                  {.header = "killed", .align = report::TextAlign::kRight},
                                  {.header = "time to the next correct result", .align = report::TextAlign::kRight}}};
  for (std::size_t i = 0; i < result.seconds.size(); ++i) {
    table.rows.push_back({fmt::format("{}", i + 1), fmt::format("rank {}", result.victims[i]),
                          yoke::to_string(Seconds{result.seconds[i]})});
  }
  const SampleStats stats = summarize(result.seconds);
  // Two have no middle.
  const std::string median = result.seconds.size() < 3 ? "" : fmt::format("Median {}. ", to_string(Seconds{stats.p50}));
  return report::render_text(table) + fmt::format("{}Longest {}.\n", median, to_string(Seconds{stats.max}));
}

RunRecord recovery_record(const RecoveryOptions& options, int ranks, const RecoveryResult& result) {
  Document settings = to_json(options);
  settings.add("ranks", Document::number(std::int64_t{ranks}));
  RunRecord record = new_record("recovery", settings);
  constexpr double kMicro = 1e6;
  const SampleStats stats = summarize(result.seconds);
  record.rows.push_back({.name = "time to the next correct result",
                         .size = options.size.value,
                         .value = stats.p50 * kMicro,
                         .low = stats.p25 * kMicro,
                         .high = stats.p75 * kMicro,
                         .unit = "us"});
  record.summary = fmt::format("{} ranks, {} killed, median {}, longest {}", ranks, result.seconds.size(),
                               yoke::to_string(Seconds{stats.p50}), yoke::to_string(Seconds{stats.max}));
  return record;
}

Document to_json(const RecoveryResult& result) { return write_fields(result); }
void from_json(const Document& document, RecoveryResult& result) { read_fields(document, result); }
Document to_json(const RecoveryOptions& options) { return write_fields(options); }
void from_json(const Document& document, RecoveryOptions& options) { read_fields(document, options); }

}  // namespace yoke::bench
