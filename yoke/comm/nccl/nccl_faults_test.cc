#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/comm/nccl/nccl.h"
#include "yoke/comm/nccl/nccl_ranks_testing.h"

namespace yoke::comm::nccl {
namespace {

using namespace literals;

class NcclFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = nccl_missing()) GTEST_SKIP() << *why;
  }
};

// All-reduces until something is wrong; tells once that it has begun. At most a minute.
std::optional<Error> all_reduce_until_it_fails(Communicator& comm, const RankPart& part, Seconds wait_at_most) {
  Numbers numbers(1021, part.rank);
  const Deadline deadline = Deadline::after(60_s);
  for (int round = 0; !deadline.expired(); ++round) {
    try {
      all_reduce(comm, numbers.data(), numbers.count(), tensor::DType::kF32, ReduceOp::kMax, numbers.stream());
      comm.wait(comm.record(numbers.stream()), Deadline::after(wait_at_most));
    } catch (const Error& error) {
      return error;
    }
    if (round == 5) part.say(fmt::format("looping-{}-{}", part.epoch, part.rank));
  }
  return std::nullopt;
}

void await_looping(const RankProcesses& ranks, Deadline deadline) {
  const RankPart watcher = ranks.watcher();
  for (int rank = 0; rank < watcher.size; ++rank) watcher.hear(fmt::format("looping-1-{}", rank), deadline);
}

// A killed rank is told to the others, who go on with one that takes its place.
TEST_F(NcclFaults, AKilledRankIsReportedAndReplaced) {
  if (const auto part = rank_part()) {
    const auto comm = join(*part, 15_s);
    if (part->epoch == 1) {
      const auto error = all_reduce_until_it_fails(*comm, *part, 15_s);
      ASSERT_TRUE(error.has_value()) << "nothing failed";
      EXPECT_TRUE(error->code() == ErrorCode::kUnavailable || error->code() == ErrorCode::kTimeout) << error->message();
      part->say(fmt::format("told-{}", part->rank), error->message());
      comm->rebuild(membership_of(part->size, 2), Deadline::after(40_s));
    }
    Numbers numbers(1021, part->rank);
    all_reduce_rightly(*comm, numbers);
    all_reduce_rightly(*comm, numbers);
    return;
  }
  RankProcesses ranks(3);
  await_looping(ranks, Deadline::after(60_s));
  ranks.signal(2, SIGKILL);
  const Instant killed = real_clock().now();
  for (const int rank : {0, 1}) {
    const std::string error = ranks.watcher().hear(fmt::format("told-{}", rank), Deadline::after(30_s));
    fmt::print("rank {} after {:.3f} s: {}\n", rank, to_seconds(real_clock().now() - killed).value, error);
  }
  ranks.replace(2, 2);
  ranks.expect_success(Deadline::after(60_s));
}

// Nothing tells that a rank has stopped but time, and what waits on the device for it must end too.
TEST_F(NcclFaults, AStoppedRankEndsTheWaitAtItsDeadline) {
  if (const auto part = rank_part()) {
    {
      const auto comm = join(*part, 60_s);
      const auto error = all_reduce_until_it_fails(*comm, *part, 2_s);
      ASSERT_TRUE(error.has_value()) << "nothing failed";
      EXPECT_EQ(error->code(), ErrorCode::kTimeout) << error->message();
    }
    part->say(fmt::format("ended-{}", part->rank));
    return;
  }
  RankProcesses ranks(2);
  await_looping(ranks, Deadline::after(60_s));
  ranks.signal(1, SIGSTOP);
  ranks.expect_success(0, Deadline::after(40_s));
  EXPECT_NO_THROW(ranks.watcher().hear("ended-0", Deadline::after(1_s)));
  ranks.signal(1, SIGKILL);
}

TEST_F(NcclFaults, AbortFromAnotherThreadEndsTheWait) {
  if (const auto part = rank_part()) {
    const auto comm = join(*part, 60_s);
    Numbers numbers(1021, part->rank);
    all_reduce_rightly(*comm, numbers);
    if (part->rank == 1) {
      part->hear("aborted", Deadline::after(40_s));  // takes no part in the second one
      return;
    }
    all_reduce(*comm, numbers.data(), numbers.count(), tensor::DType::kF32, ReduceOp::kSum, numbers.stream());
    const tensor::Event event = comm->record(numbers.stream());
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      comm->abort(Error(ErrorCode::kConflict, "somebody said so"));
    });
    for (int again = 0; again < 2; ++again) {
      try {
        comm->wait(event, Deadline::after(30_s));
        ADD_FAILURE() << "the wait ended without an error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kConflict) << error.message();
      }
    }
    EXPECT_ERROR(barrier(*comm), ErrorCode::kConflict, "somebody said so");
    other.join();
    part->say("aborted");
    return;
  }
  RankProcesses(2).expect_success(Deadline::after(60_s));
}

}  // namespace
}  // namespace yoke::comm::nccl
