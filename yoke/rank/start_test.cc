// Ranks of threads, and what is decided before any rank starts; ranks that are processes are in tests/.
#include "yoke/rank/start.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace yoke::rank {
namespace {

TEST(RankStarter, IsDecidedByTheLauncherThenTheTransport) {
  const job::RankPlace place{.rank = 1, .size = 2};
  EXPECT_EQ(rank_starter(Transport::kThreads, place), RankStarter::kLauncher);
  EXPECT_EQ(rank_starter(Transport::kThreads, std::nullopt), RankStarter::kThreads);
  EXPECT_EQ(rank_starter(Transport::kMpi, std::nullopt), RankStarter::kMpirun);
  EXPECT_EQ(rank_starter(Transport::kNccl, std::nullopt), RankStarter::kJob);
  EXPECT_EQ(rank_starter(Transport::kAuto, std::nullopt), RankStarter::kJob);
}

TEST(RankCount, IsOneForEachNodeUnlessGiven) {
  spec::Cluster cluster;
  cluster.nodes.resize(3);
  EXPECT_EQ(rank_count(5, cluster, 2), 5);
  EXPECT_EQ(rank_count(0, cluster, 2), 3);
  EXPECT_EQ(rank_count(0, std::nullopt, 2), 2);
}

TEST(ThreadRanks, RunsRankZeroInTheThreadThatWaits) {
  std::atomic<int> sum = 0;
  std::thread::id of_rank_zero;
  const auto ranks = Ranks::start({.starter = RankStarter::kThreads, .ranks = 3, .here = [&](World& world) {
                                     if (world.place().rank == 0) of_rank_zero = std::this_thread::get_id();
                                     std::int32_t value = world.place().rank + 1;
                                     comm::all_reduce(world.comm(), &value, 1, tensor::DType::kI32);
                                     sum += value;
                                   }});
  ranks->wait();
  EXPECT_EQ(of_rank_zero, std::this_thread::get_id());
  EXPECT_EQ(sum, 3 * 6);
}

// Rank 1 fails; rank 0 then fails for want of it.
TEST(ThreadRanks, ThrowsTheFirstFailureNotWhatFollowsFromIt) {
  const auto ranks = Ranks::start({.starter = RankStarter::kThreads, .ranks = 2, .here = [](World& world) {
                                     if (world.place().rank == 1) throw std::logic_error("the cause");
                                     std::int32_t value = 0;
                                     comm::all_reduce(world.comm(), &value, 1, tensor::DType::kI32);
                                   }});
  try {
    ranks->wait();
    ADD_FAILURE() << "it ended well";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "the cause");
  }
}

TEST(ThreadRanks, ThatNobodyWaitsForEndWithTheirOwner) {
  std::atomic<bool> other_failed = false;
  {
    const auto ranks = Ranks::start({.starter = RankStarter::kThreads, .ranks = 2, .here = [&](World& world) {
                                       std::int32_t value = 0;
                                       try {
                                         comm::all_reduce(world.comm(), &value, 1, tensor::DType::kI32);
                                       } catch (const Error&) {
                                         other_failed = true;
                                       }
                                     }});
  }
  EXPECT_TRUE(other_failed);
}

}  // namespace
}  // namespace yoke::rank
