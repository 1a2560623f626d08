#include "yoke/fleet/at_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace yoke::fleet {
namespace {

TEST(AtOnce, AnswersInOrderAndOneThatFailsDoesNotKeepTheOthers) {
  std::atomic<int> waiting{0};
  const auto answers = at_once(3, {}, [&](std::size_t i) {
    // All are under way before any ends.
    for (++waiting; waiting < 3;) std::this_thread::yield();
    if (i == 1) throw Error(ErrorCode::kNotFound, "there is no second");
    return static_cast<int>(i) * 10;
  });
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(*answers[0], 0);
  EXPECT_EQ(answers[1].error().message(), "there is no second");
  EXPECT_EQ(*answers[2], 20);
}

TEST(AtOnce, AnInterruptIsThrownWhenAllHaveEnded) {
  std::atomic<int> ended{0};
  const auto answers = try_to([&] {
    return at_once(2, {}, [&](std::size_t i) {
      ++ended;
      if (i == 0) throw Error(ErrorCode::kInterrupted, "stopped");
      return 1;
    });
  });
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code(), ErrorCode::kInterrupted);
  EXPECT_EQ(ended, 2);
}

TEST(AtOnce, ErrorsOfSeveralBecomeOneThatNamesEach) {
  std::vector<Result<int>> answers;
  answers.emplace_back(1);
  answers.emplace_back(Unexpected(Error(ErrorCode::kTimeout, "spark-2 is silent", "is it on?")));
  answers.emplace_back(Unexpected(Error(ErrorCode::kNotFound, "there is no spark-3")));
  const auto all = try_to([&] { return all_or_throw(std::move(answers)); });
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(all.error().message(), "spark-2 is silent; also: there is no spark-3");
  EXPECT_EQ(all.error().hint(), "is it on?");
}

}  // namespace
}  // namespace yoke::fleet
