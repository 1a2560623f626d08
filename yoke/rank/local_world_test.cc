#include "yoke/rank/local_world.h"

#include <gtest/gtest.h>

#include <thread>

#include "yoke/comm/local/local.h"

namespace yoke::rank {
namespace {

TEST(LocalWorld, RanksAreThreadsOfThisNodeThatAddTogether) {
  auto ranks = comm::local::make_local(3);
  std::vector<float> sums(3);
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&sums, r, comm = std::move(ranks[r])]() mutable {
      const auto world = make_local_world(std::move(comm));
      EXPECT_EQ(world->place().rank, static_cast<int>(r));
      EXPECT_EQ(world->place().size, 3);
      EXPECT_EQ(world->place().local_rank, static_cast<int>(r));
      EXPECT_EQ(world->place().local_size, 3);
      EXPECT_FALSE(world->place().node.empty());
      sums[r] = static_cast<float>(r + 1);
      comm::all_reduce(world->comm(), &sums[r], 1, tensor::DType::kF32);
    });
  }
  threads.clear();  // joins
  EXPECT_EQ(sums, (std::vector<float>{6, 6, 6}));
}

TEST(LocalWorld, ThereIsNothingToRecoverFrom) {
  const auto world = make_local_world(std::move(comm::local::make_local(1).front()));
  try {
    world->recover(Error(ErrorCode::kUnavailable, "rank 1 is gone"));
    ADD_FAILURE() << "it came back";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "rank 1 is gone");
  }
}

}  // namespace
}  // namespace yoke::rank
