#include "yoke/comm/local/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/comm/communicator_testing.h"
#include "yoke/comm/rank_threads_testing.h"

namespace yoke::comm::local {
namespace {

using namespace literals;
using testing::HasSubstr;

class LocalRanks : public testing::TestWithParam<int> {};

TEST_P(LocalRanks, PassTheCommonCases) {
  auto ranks = make_local(GetParam());
  CaseOptions options;
  // Beyond four ranks only the sums get longer: the largest size would take most of the time and show nothing new.
  if (GetParam() > 4) options.bytes_max = std::min<std::size_t>(options.bytes_max, 1 << 20);
  EXPECT_THAT(run_on_threads(ranks, [&](Communicator& comm) { return run_communicator_cases(comm, options); }),
              testing::IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Sizes, LocalRanks, testing::Values(1, 2, 3, 4, 8));

spec::Membership members(int epoch, int ranks) {
  return {.epoch = epoch, .token = "00", .members = std::vector<spec::Member>(static_cast<std::size_t>(ranks))};
}

// The sum of 1 over all ranks, as this rank gets it.
int sum_of_ones(Communicator& comm) {
  int value = 1;
  all_reduce(comm, &value, 1, tensor::DType::kI32);
  return value;
}

TEST(Local, RanksAtDifferentOperationsBothLearnWhoIsWhere) {
  for (const std::size_t other_count : {8UL, 9UL}) {
    auto ranks = make_local(2);
    const auto lines = run_on_threads(ranks, [&](Communicator& comm) -> std::vector<std::string> {
      std::vector<float> values(9);
      if (comm.rank() == 0) all_reduce(comm, values.data(), 8, tensor::DType::kF32);
      if (comm.rank() == 1 && other_count == 9) all_reduce(comm, values.data(), 9, tensor::DType::kF32);
      if (comm.rank() == 1 && other_count == 8) broadcast(comm, values.data(), 8, tensor::DType::kF32, 0);
      return {"no error"};
    });
    const std::string other = other_count == 9 ? "all-reduce of 9 f32 (sum)" : "broadcast of 8 f32 from rank 0";
    EXPECT_THAT(lines,
                testing::Each("conflict: operation 0: rank 0 is at all-reduce of 8 f32 (sum), rank 1 at " + other));
  }
}

TEST(Local, AnExchangeOfDifferentSizesIsAConflict) {
  auto ranks = make_local(2);
  const auto lines = run_on_threads(ranks, [&](Communicator& comm) -> std::vector<std::string> {
    float values[4] = {};
    const bool sends = comm.rank() == 0;
    comm.enqueue({.kind = sends ? CollectiveKind::kSend : CollectiveKind::kReceive,
                  .send = values,
                  .receive = values,
                  .count = sends ? 3UL : 4UL,
                  .root = 1 - comm.rank()},
                 tensor::Stream::cpu());
    return {"no error"};
  });
  EXPECT_THAT(lines, testing::Each(testing::StartsWith("conflict: rank 0 is at send of 3 f32 to rank 1, rank 1 at")));
}

TEST(Local, TheDeadlineNamesWhoDidNotCome) {
  auto ranks = make_local(3, {.operation_timeout = 20_ms});
  const Error error = error_of([&] { barrier(*ranks[1]); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_EQ(error.message(), "ranks 0, 2 did not come to barrier (operation 0)");
  EXPECT_EQ(error_of([&] { barrier(*ranks[0]); }).message(), error.message()) << "a rank that comes late gets it too";
}

TEST(Local, ALimitThatIsSetLaterHolds) {
  auto ranks = make_local(2, {.operation_timeout = 300_s});
  for (auto& rank : ranks) rank->limit_operations(20_ms);
  EXPECT_EQ(error_of([&] { barrier(*ranks[0]); }).message(), "rank 1 did not come to barrier (operation 0)");
}

TEST(Local, ASendNobodyTakesAndAReceiveNobodyServesEndAtTheDeadline) {
  for (const auto kind : {CollectiveKind::kSend, CollectiveKind::kReceive}) {
    auto ranks = make_local(2, {.operation_timeout = 20_ms});
    int value = 0;
    const Error error = error_of([&] {
      ranks[0]->enqueue({.kind = kind, .send = &value, .receive = &value, .count = 1, .root = 1},
                        tensor::Stream::cpu());
    });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.message(), testing::StartsWith("rank 1 "));
  }
}

TEST(Local, AbortFromAnotherThreadEndsWhatIsUnderWayAndToCome) {
  auto ranks = make_local(2);
  auto waiting = std::async(std::launch::async, [&] { return error_of([&] { barrier(*ranks[0]); }); });
  ranks[0]->abort(Error(ErrorCode::kInterrupted, "enough"));
  EXPECT_EQ(waiting.get().message(), "enough");
  EXPECT_ERROR(barrier(*ranks[0]), ErrorCode::kInterrupted, "enough");
  EXPECT_ERROR(barrier(*ranks[1]), ErrorCode::kInterrupted, "enough");
}

TEST(Local, AnEndedRankIsNamedAtOnce) {
  auto ranks = make_local(3);
  auto waiting = std::async(std::launch::async, [&] { return error_of([&] { barrier(*ranks[0]); }); });
  ranks[2].reset();
  EXPECT_EQ(waiting.get().message(), "rank 2 is gone");
  const Error sending =
      error_of([&] { ranks[1]->enqueue({.kind = CollectiveKind::kReceive, .root = 2}, tensor::Stream::cpu()); });
  EXPECT_EQ(sending.message(), "rank 2 is gone");
}

TEST(Local, AGroupThatWasBrokenUpRebuildsAndGoesOn) {
  auto ranks = make_local(3);
  ranks[1]->abort(Error(ErrorCode::kUnavailable, "a cable was cut"));
  EXPECT_ERROR(barrier(*ranks[0]), ErrorCode::kUnavailable, "a cable was cut");
  const auto lines = run_on_threads(ranks, [&](Communicator& comm) -> std::vector<std::string> {
    comm.rebuild(members(2, 3), Deadline::after(30_s));
    return run_communicator_cases(comm, {.bytes_max = 4096, .every = 17});
  });
  EXPECT_THAT(lines, testing::IsEmpty());
}

TEST(Local, ARebuildToWhichNotAllCameIsTriedOnceMore) {
  auto ranks = make_local(3);
  const Error error = error_of([&] { ranks[0]->rebuild(members(2, 3), Deadline::after(20_ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("ranks 1, 2 did not come to the rebuild at epoch 2"));
  const auto lines = run_on_threads(ranks, [&](Communicator& comm) -> std::vector<std::string> {
    comm.rebuild(members(3, 3), Deadline::after(30_s));
    return {std::to_string(sum_of_ones(comm))};
  });
  EXPECT_THAT(lines, testing::ElementsAre("3", "3", "3"));
}

TEST(Local, AnOldEpochAndASplitGroupCannotBeRebuilt) {
  auto ranks = make_local(1);
  EXPECT_ERROR(ranks[0]->rebuild(members(1, 1), Deadline::after(1_s)), ErrorCode::kInvalid, "cannot join epoch 1");
  const auto group = ranks[0]->split({0});
  EXPECT_ERROR(group->rebuild(members(2, 1), Deadline::after(1_s)), ErrorCode::kUnsupported,
               "a group made by split() cannot be rebuilt");
}

TEST(Local, ALeavingRankDoesNotDisturbAnExchangeOfOthers) {
  auto ranks = make_local(3);
  ranks[2].reset();
  ranks.pop_back();
  const auto lines = run_on_threads(ranks, [](Communicator& comm) -> std::vector<std::string> {
    const int mine = comm.rank();
    int theirs = -1;
    comm.enqueue({.kind = CollectiveKind::kSendReceive,
                  .send = &mine,
                  .receive = &theirs,
                  .count = 1,
                  .type = tensor::DType::kI32,
                  .root = 1 - mine,
                  .source = 1 - mine},
                 tensor::Stream::cpu());
    return {std::to_string(theirs)};
  });
  EXPECT_THAT(lines, testing::ElementsAre("1", "0"));
}

// The body itself must be able to fail: a communicator that spoils one byte is found out, by the name of the case.
class SpoilingCommunicator final : public Communicator {
 public:
  explicit SpoilingCommunicator(Communicator& real) : real_(real) {}
  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  void enqueue(const Collective& operation, tensor::Stream stream) override {
    real_.enqueue(operation, stream);
    if (operation.kind == CollectiveKind::kGather && operation.count == 7 && operation.receive != nullptr) {
      const std::size_t end = counts_of(operation, rank(), size()).receive * tensor::size_of(operation.type);
      static_cast<std::byte*>(operation.receive)[end] = std::byte{0};
    }
  }
  tensor::Event record(tensor::Stream stream) override { return real_.record(stream); }
  void wait(tensor::Event event, Deadline deadline) override { real_.wait(event, deadline); }
  void limit_operations(Seconds limit) override { real_.limit_operations(limit); }
  void abort(const Error& reason) override { real_.abort(reason); }
  void rebuild(const spec::Membership& list, Deadline deadline) override { real_.rebuild(list, deadline); }
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override { return real_.split(ranks); }
  std::string describe() const override { return "spoiling"; }

 private:
  Communicator& real_;
};

TEST(CommunicatorCases, TellAByteWrittenPastTheEnd) {
  auto ranks = make_local(1);
  SpoilingCommunicator spoiling(*ranks[0]);
  const auto failures = run_communicator_cases(spoiling, {.bytes_max = 0, .kinds = {CollectiveKind::kGather}});
  ASSERT_FALSE(failures.empty());
  EXPECT_THAT(failures[0], testing::AllOf(HasSubstr("gather f32 - count 7"), HasSubstr("byte 28 of 28 is 0x00")));
}

}  // namespace
}  // namespace yoke::comm::local
