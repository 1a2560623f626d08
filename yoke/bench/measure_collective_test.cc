#include "yoke/bench/measure_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/bench/perf_table.h"
#include "yoke/bench/shape.h"
#include "yoke/comm/local/local.h"

namespace yoke::bench {
namespace {

using namespace literals;
using testing::HasSubstr;
using K = comm::CollectiveKind;

// The real thing, but for the faults that a test puts between: a wrong bit, or a rank that comes late.
class FaultyCommunicator : public comm::Communicator {
 public:
  FaultyCommunicator(std::unique_ptr<comm::Communicator> inner, std::function<void(const comm::Collective&)> after)
      : inner_(std::move(inner)), after_(std::move(after)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void enqueue(const comm::Collective& operation, tensor::Stream stream) override {
    inner_->enqueue(operation, stream);
    after_(operation);
  }
  tensor::Event record(tensor::Stream stream) override { return inner_->record(stream); }
  void wait(tensor::Event event, Deadline deadline) override { inner_->wait(event, deadline); }
  void limit_operations(Seconds limit) override { inner_->limit_operations(limit); }
  void abort(const Error& reason) override { inner_->abort(reason); }
  void rebuild(const spec::Membership& members, Deadline deadline) override { inner_->rebuild(members, deadline); }
  std::unique_ptr<comm::Communicator> split(const std::vector<int>& ranks) override { return inner_->split(ranks); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<comm::Communicator> inner_;
  std::function<void(const comm::Collective&)> after_;
};

struct Harness {
  CollectiveOptions options{.size_min = {1024}, .size_max = {4096}, .factor = 4, .iterations = 3};
  int ranks = 2;
  std::function<void(int rank, const comm::Collective&)> after;  // each operation
  const BaselineLibrary* baseline = nullptr;
  std::int64_t memory = 1LL << 30;

  CollectiveRun run(CollectiveSink* sink = nullptr) const {
    auto communicators = comm::local::make_local(ranks, {.operation_timeout = options.timeout});
    std::vector<CollectiveRun> results(communicators.size());
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < communicators.size(); ++r) {
      threads.emplace_back([&, r] {
        std::unique_ptr<comm::Communicator> comm = std::move(communicators[r]);
        const int rank = static_cast<int>(r);
        if (after)
          comm = std::make_unique<FaultyCommunicator>(std::move(comm), [&, rank](const auto& op) { after(rank, op); });
        const RankFacts facts{.host = "node-" + std::to_string(r), .memory_available = memory};
        try {
          results[r] =
              run_collective_bench(*comm, options, facts, {.sink = r == 0 ? sink : nullptr, .baseline = baseline});
        } catch (const Error& error) {
          results[r].failure = failure_of(error);
        }
      });
    }
    threads.clear();
    for (const CollectiveRun& result : results)
      EXPECT_EQ(result.rows.size(), results[0].rows.size()) << "all ranks hold the same result";
    return results[0];
  }
};

TEST(MeasureCollective, ChecksEveryKindTypeAndOperation) {
  for (const K kind : {K::kAllReduce, K::kAllGather, K::kReduceScatter, K::kBroadcast, K::kReduce, K::kGather,
                       K::kScatter, K::kAllToAll, K::kSendReceive}) {
    for (const int ranks : {1, 2, 3}) {
      Harness harness{.ranks = ranks};
      harness.options.kind = kind;
      harness.options.size_min = {0};
      harness.options.size_max = {1021};
      harness.options.factor = 60;  // 0, 16, 960
      harness.options.types = parse_types("all");
      harness.options.ops = parse_ops("all");
      harness.options.root = -1;
      harness.options.unalign = 1;
      const CollectiveRun run = harness.run();
      ASSERT_FALSE(run.failure) << comm::to_string(kind) << " " << run.failure->message;
      EXPECT_EQ(run.wrong(), 0) << comm::to_string(kind) << " over " << ranks;
      const CollectiveTraits& traits = traits_of(kind);
      const std::size_t ops = traits.prints_op ? 4 : 1;
      const std::size_t roots = traits.has_root ? static_cast<std::size_t>(ranks) : 1;
      EXPECT_EQ(run.rows.size(), 3 * 5 * ops * roots) << comm::to_string(kind);
      EXPECT_TRUE(run.rows[0].out_of_place.wrong.has_value());
      EXPECT_EQ(run.rows[0].in_place.wrong.has_value(), traits.in_place);
    }
  }
}

TEST(MeasureCollective, FindsOneWrongBitOnOneRank) {
  Harness harness;
  harness.after = [](int rank, const comm::Collective& operation) {
    if (rank == 1 && operation.kind == K::kAllReduce && operation.count == 256)
      static_cast<std::uint8_t*>(operation.receive)[999] ^= 1;
  };
  const CollectiveRun run = harness.run();
  EXPECT_EQ(run.rows.at(0).out_of_place.wrong, 1);
  EXPECT_EQ(run.rows.at(0).in_place.wrong, 1);
  EXPECT_EQ(run.rows.at(1).out_of_place.wrong, 0);
  EXPECT_FALSE(run.passed());
}

TEST(MeasureCollective, ChecksNothingWhereAskedNotTo) {
  Harness harness;
  harness.options.checks = 0;
  EXPECT_FALSE(harness.run().rows.at(0).out_of_place.wrong.has_value());
}

TEST(MeasureCollective, NamesTheRankThatComesLate) {
  Harness harness{.ranks = 3};
  harness.options.iterations = 9;
  harness.after = [](int rank, const comm::Collective& operation) {
    if (rank == 2 && operation.kind == K::kAllReduce) real_clock().sleep(4_ms);
  };
  const CollectiveRun run = harness.run();
  EXPECT_EQ(run.rows.at(0).out_of_place.straggler.rank, 2);
  EXPECT_GT(run.rows.at(0).out_of_place.straggler.late, 1000);
  EXPECT_THAT(table_details(run), HasSubstr("rank 2 on node-2 comes"));
}

TEST(MeasureCollective, ADeadlineNamesTheMissingRankAndKeepsTheRows) {
  Harness harness;
  harness.options.timeout = {0.3};
  harness.after = [](int rank, const comm::Collective& operation) {
    if (rank == 1 && operation.kind == K::kAllReduce && operation.count == 1024) real_clock().sleep(1_s);
  };
  std::string text;
  TableSink sink([&](std::string_view more) { text += more; });
  const CollectiveRun run = harness.run(&sink);
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_EQ(to_error(*run.failure).code(), ErrorCode::kTimeout) << run.failure->message;
  EXPECT_THAT(run.failure->message, HasSubstr("rank 1"));
  EXPECT_THAT(text, HasSubstr("# error: " + run.failure->message));
}

TEST(MeasureCollective, IsGuardedByAvailableMemory) {
  Harness harness{.memory = 12'000};
  harness.options.size_max = {1LL << 40};  // would be a terabyte
  const CollectiveRun run = harness.run();
  EXPECT_EQ(run.reduced_to, 3000);  // a quarter stays free, three buffers share the rest
  EXPECT_EQ(run.options.size_max, Bytes{3000});
  EXPECT_EQ(run.rows.back().size, 1024);
}

TEST(MeasureCollective, TimesThePlainLibraryInTurnsAndChecksItToo) {
  const BaselineLibrary wrong{.name = "mpi", .run = [](const comm::Collective& operation) {
                                std::memset(operation.receive, 1, operation.count);  // not even an attempt
                              }};
  Harness harness{.baseline = &wrong};
  const CollectiveRun run = harness.run();
  EXPECT_EQ(run.baseline, "mpi");
  ASSERT_TRUE(run.rows.at(0).baseline.has_value());
  EXPECT_GT(run.rows[0].baseline->ours, run.rows[0].baseline->theirs);
  EXPECT_GT(run.rows[0].baseline->wrong, 0);
  EXPECT_EQ(run.rows[0].out_of_place.wrong, 0) << "ours stays right";
  EXPECT_FALSE(run.passed());
}

TEST(MeasureCollective, BlockingAveragesAndCyclesDoAsTheySay) {
  for (const Blocking blocking : {Blocking::kWait, Blocking::kWaitAndBarrier, Blocking::kWaitBarrierOutside}) {
    Harness harness;
    harness.options.blocking = blocking;
    harness.options.average = RankAverage::kMax;
    harness.options.cycles = 2;
    harness.options.aggregate = 3;
    const CollectiveRun run = harness.run();
    ASSERT_EQ(run.rows.size(), 4U);
    const PlacementResult& result = run.rows[0].out_of_place;
    EXPECT_EQ(result.time, *std::max_element(result.rank_times.begin(), result.rank_times.end()));
    EXPECT_EQ(result.iterations.size(), 2U);
    EXPECT_EQ(result.iterations[0].size(), 3U);
    EXPECT_LE(result.stats.p50, result.stats.max);
  }
}

struct BadOptions {
  const char* name;
  void (*change)(CollectiveOptions&);
  const char* message;
  const char* hint;
};
class RefusedOptions : public testing::TestWithParam<BadOptions> {};
TEST_P(RefusedOptions, AreUsageErrors) {
  CollectiveOptions options;
  GetParam().change(options);
  EXPECT_ERROR(validate(options, 2), ErrorCode::kUsage, GetParam().message, GetParam().hint);
}
INSTANTIATE_TEST_SUITE_P(
    Each, RefusedOptions,
    testing::Values(
        BadOptions{"LeastAboveMost", [](auto& o) { o.size_min = {64LL << 20}; }, "above the largest",
                   "-b is where the sizes begin"},
        BadOptions{"NoStep", [](auto& o) { o.size_min = o.step = {0}; }, "never end", "-f 2"},
        BadOptions{"TooManyRows",
                   [](auto& o) {
                     o.size_min = {0};
                     o.step = {1};
                   },
                   "rows", "raise -i"},
        BadOptions{"NoIterations", [](auto& o) { o.iterations = 0; }, "-n cannot be 0", "at least one"},
        BadOptions{"NegativeWarmup", [](auto& o) { o.warmup_iterations = -1; }, "-w cannot be -1", "0 or more"},
        BadOptions{"RootThatIsNoRank", [](auto& o) { o.root = 2; }, "no rank 2", "0 to 1"},
        BadOptions{"SkipsAll", [](auto& o) { o.per_iteration_skip = 20; }, "leaves nothing", "fewer than -n"},
        BadOptions{"NoTime", [](auto& o) { o.timeout = {0}; }, "-T must be above 0", "the time in which"},
        BadOptions{"FactorZero", [](auto& o) { o.factor = 0; }, "-f cannot be 0", "2 doubles"},
        BadOptions{"Petabyte", [](auto& o) { o.size_max = {1LL << 50}; }, "1 TiB", "a smaller -e"}),
    [](const auto& test) { return test.param.name; });

TEST(CollectiveOptions, SizesGoByFactorOrStep) {
  CollectiveOptions options{.size_min = {0}, .size_max = {64}, .factor = 2};
  EXPECT_THAT(row_sizes(options), testing::ElementsAre(0, 16, 32, 64));
  options = {.size_min = {8}, .size_max = {28}, .step = {10}};
  EXPECT_THAT(row_sizes(options), testing::ElementsAre(8, 18, 28));
  options.size_max = {8};
  EXPECT_THAT(row_sizes(options), testing::ElementsAre(8));
}

TEST(CollectiveOptions, NamesThatYokeLacksSayWhatThereIs) {
  EXPECT_EQ(parse_types("bfloat16").front(), tensor::DType::kBf16);
  EXPECT_EQ(parse_ops("all").size(), 4U);
  for (const char* name : {"double", "int64", "f8e4m3", "", "Float"})
    EXPECT_ERROR(parse_types(name), ErrorCode::kUsage, fmt::format("--datatype cannot be '{}'", name)) << name;
  for (const char* name : {"prod", "mulsum", "SUM"})
    EXPECT_ERROR(parse_ops(name), ErrorCode::kUsage, fmt::format("--op cannot be '{}'", name)) << name;
}

}  // namespace
}  // namespace yoke::bench
