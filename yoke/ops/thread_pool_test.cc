#include "yoke/ops/thread_pool.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceWhateverTheSizes) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 97, 1000}) {
      for (const std::int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        pool.parallel_for(count, grain, [&](Range range) {
          for (std::int64_t i = range.begin; i < range.end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (const auto& times : seen) EXPECT_EQ(times, 1);
      }
    }
  }
}

TEST(ThreadPool, APieceThatThrowsEndsTheLoopAndThePoolGoesOn) {
  ThreadPool pool(3);
  const auto fail = [](Range range) {
    if (range.begin == 40) throw Error(ErrorCode::kInvalid, "piece 40");
  };
  EXPECT_ERROR(pool.parallel_for(100, 1, fail), ErrorCode::kInvalid, "piece 40");
  std::atomic<int> count{0};
  pool.parallel_for(100, 1, [&](Range) { ++count; });
  EXPECT_EQ(count, 100);
}

TEST(ThreadPool, ManyShortLoopsFollowEachOther) {
  ThreadPool pool(4);
  std::atomic<std::int64_t> sum{0};
  for (int i = 0; i < 2000; ++i) pool.parallel_for(8, 1, [&](Range range) { sum += range.begin; });
  EXPECT_EQ(sum, 2000 * 28);
}

}  // namespace
}  // namespace yoke
