#include "yoke/engine/scheduler.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

constexpr SchedulerLimits kLimits{
    .vocabulary = 100, .context_most = 256, .pages = 8, .chunk_tokens = 32, .sequences_most = 3};

Request request_of(std::uint64_t id, std::size_t prompt, std::int64_t answer) {
  return {.id = id, .prompt = std::vector<TokenId>(prompt, 1), .answer_most = answer};
}
RowResult made(std::uint64_t id, TokenId token) { return {.id = id, .made = Sampled{.id = token}}; }

TEST(SchedulerTest, PromptsComeInChunksBesideAnswers) {
  Scheduler scheduler(kLimits);
  scheduler.submit(request_of(1, 40, 4));
  StepPlan plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 1U);
  EXPECT_EQ(plan.rows, (std::vector<PlanRow>{{.id = 1, .fresh = 32}}));
  scheduler.take({{.id = 1}});
  EXPECT_EQ(scheduler.next().rows, (std::vector<PlanRow>{{.id = 1, .fresh = 8}}));
  scheduler.take({made(1, 5)});
  scheduler.submit(request_of(2, 31, 1));
  plan = scheduler.next();
  EXPECT_EQ(plan.rows, (std::vector<PlanRow>{{.id = 1, .fresh = 1, .made = 5}, {.id = 2, .fresh = 31}}));
}

TEST(SchedulerTest, IsAdmittedWhenTheCacheHasRoomForAllOfIt) {
  Scheduler scheduler(kLimits);             // eight pages of 16 tokens
  scheduler.submit(request_of(1, 16, 48));  // four of them
  scheduler.submit(request_of(2, 16, 64));  // five: must wait
  scheduler.submit(request_of(3, 1, 1));    // would fit, but does not overtake
  StepPlan plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 1U);
  const auto cancelled = scheduler.cancel(1);
  ASSERT_TRUE(cancelled.has_value());
  EXPECT_EQ(cancelled->reason, FinishReason::kCancelled);
  EXPECT_TRUE(scheduler.take({made(1, 5)}).empty());  // what comes after is for nobody
  plan = scheduler.next();
  EXPECT_EQ(plan.released, (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(plan.admitted.size(), 2U);
}

TEST(SchedulerTest, NoMoreSequencesThanAllowed) {
  Scheduler scheduler(kLimits);
  for (std::uint64_t id = 1; id <= 4; ++id) scheduler.submit(request_of(id, 1, 1));
  EXPECT_EQ(scheduler.next().admitted.size(), 3U);
}

TEST(SchedulerTest, AfterARestartAllGoesOnWhereItStood) {
  Scheduler scheduler(kLimits);
  scheduler.submit(request_of(1, 4, 10));
  scheduler.submit(request_of(2, 4, 10));
  scheduler.submit(request_of(3, 4, 200));  // waits
  scheduler.next();
  scheduler.take({made(1, 11), made(2, 21)});
  scheduler.next();
  scheduler.restart();
  const StepPlan plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 2U);
  EXPECT_EQ(plan.admitted[0].answer, (std::vector<TokenId>{11}));
  EXPECT_EQ(plan.rows, (std::vector<PlanRow>{{.id = 1, .fresh = 5}, {.id = 2, .fresh = 5}}));
  EXPECT_TRUE(plan.released.empty());
}

// The logits of a request's prompt from a position on.
RowResult with_logits(std::uint64_t id, std::int64_t position, std::int64_t rows) {
  return {.id = id,
          .logits = LogitsMade{.id = id, .position = position, .rows = Tensor::zeros({rows, 100}, DType::kF32)}};
}

TEST(SchedulerTest, LogitsThatAStepWasToMakeAreNotGivenBeforeItsResult) {
  Scheduler scheduler(kLimits);
  Request request = request_of(1, 40, 4);
  request.logits = LogitsWanted::kAll;
  scheduler.submit(request);
  scheduler.next();
  scheduler.take({with_logits(1, 0, 32)});
  scheduler.next();  // the rest of the prompt, but a rank dies over it
  scheduler.restart();
  ASSERT_EQ(scheduler.next().admitted.at(0).logits, LogitsWanted::kAll);
  scheduler.take({with_logits(1, 0, 32)});
  scheduler.next();
  RowResult last = with_logits(1, 32, 8);
  last.made = Sampled{.id = 5};
  scheduler.take({last});
  scheduler.restart();
  EXPECT_EQ(scheduler.next().admitted.at(0).logits, LogitsWanted::kNone) << "all were given";
}

TEST(SchedulerTest, TellsHowFarALongPromptIs) {
  Scheduler scheduler(kLimits);
  scheduler.submit(request_of(1, 40, 4));
  scheduler.next();
  const std::vector<EngineEvent> events = scheduler.take({{.id = 1}});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<PromptRead>(events[0]).done, 32);
  EXPECT_EQ(std::get<PromptRead>(events[0]).total, 40);
  scheduler.next();
  EXPECT_TRUE(std::holds_alternative<TokenMade>(scheduler.take({made(1, 5)}).at(0)));
}

TEST(SchedulerTest, AnAnswerThatHadEndedIsNotTakenUpAgain) {
  Scheduler scheduler(kLimits);
  Request ended = request_of(1, 4, 10);
  ended.answer = {3, 9};
  ended.stop_ids = {9};
  EXPECT_EQ(scheduler.submit(ended)->reason, FinishReason::kStop);
  Request full = request_of(2, 4, 2);
  full.answer = {3, 9};
  EXPECT_EQ(scheduler.submit(full)->reason, FinishReason::kLength);
  EXPECT_FALSE(scheduler.has_work());
}

TEST(SchedulerTest, ANumberIsUsedOnceAtATime) {
  Scheduler scheduler(kLimits);
  EXPECT_FALSE(scheduler.submit(request_of(1, 4, 10)).has_value());
  EXPECT_EQ(scheduler.submit(request_of(1, 4, 10))->error->code(), ErrorCode::kConflict);
}

}  // namespace
}  // namespace yoke
