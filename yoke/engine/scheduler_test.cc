#include "yoke/engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "yoke/base/rng_testing.h"

namespace yoke::engine {
namespace {

constexpr SchedulerLimits kLimits{
    .vocabulary = 100, .context_max = 256, .pages = 16, .budget = {.alone = 32, .with_others = 32}, .sequences_max = 3};

Request request_of(std::uint64_t id, std::size_t prompt, std::int64_t answer, text::TokenId token = 1) {
  return {.id = id, .prompt = std::vector<text::TokenId>(prompt, token), .answer_max = answer};
}
// Prompts that share nothing with each other.
Request own_request(std::uint64_t id, std::size_t prompt, std::int64_t answer) {
  return request_of(id, prompt, answer, static_cast<text::TokenId>(id % 100));
}
RowResult made(std::int32_t slot, text::TokenId token) {
  return {.slot = slot, .made = text::SampledToken{.id = token}};
}

// A step that ends well: a token for each row whose sequence is whole then.
std::vector<EngineEvent> end_step(Scheduler& scheduler, const StepPlan& plan,
                                  std::map<std::int32_t, std::int64_t>& left, text::TokenId token = 7) {
  std::vector<RowResult> results;
  for (const PlanRow& row : plan.rows) {
    std::int64_t& missing = left[row.slot];
    missing = std::max<std::int64_t>(0, missing - row.fresh);
    results.push_back(missing == 0 ? made(row.slot, token) : RowResult{.slot = row.slot});
  }
  return scheduler.take(results);
}

TEST(SchedulerTest, PromptsComeInChunksBesideAnswers) {
  Scheduler scheduler(kLimits);
  scheduler.submit(own_request(1, 40, 4));
  StepPlan plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 1U);
  EXPECT_EQ(plan.rows, (std::vector<PlanRow>{{.slot = 0, .fresh = 32}}));
  scheduler.take({{.slot = 0}});
  EXPECT_EQ(scheduler.next().rows, (std::vector<PlanRow>{{.slot = 0, .fresh = 8}}));
  scheduler.take({made(0, 5)});
  scheduler.submit(own_request(2, 31, 1));
  plan = scheduler.next();
  EXPECT_EQ(plan.rows, (std::vector<PlanRow>{{.slot = 0, .fresh = 1, .made = 5}, {.slot = 1, .fresh = 31}}));
}

TEST(SchedulerTest, WhileOthersAnswerAPromptGetsTheSmallerBudget) {
  Scheduler scheduler(kLimits);
  scheduler.set_budget({.alone = 32, .with_others = 3});
  scheduler.submit(own_request(1, 4, 10));
  scheduler.next();
  scheduler.take({made(0, 5)});
  scheduler.submit(own_request(2, 31, 1));
  EXPECT_EQ(scheduler.next().rows, (std::vector<PlanRow>{{.slot = 0, .fresh = 1, .made = 5}, {.slot = 1, .fresh = 3}}));
}

TEST(SchedulerTest, ManyLongAnswersRunAtOnce) {
  Scheduler scheduler({.vocabulary = 100, .context_max = 256, .pages = 32, .sequences_max = 16});
  for (std::uint64_t id = 1; id <= 16; ++id) scheduler.submit(own_request(id, 4, 252));
  EXPECT_EQ(scheduler.next().rows.size(), 16U) << "what an answer may have is not reserved";
}

TEST(SchedulerTest, NoMoreSequencesThanAllowed) {
  Scheduler scheduler(kLimits);
  for (std::uint64_t id = 1; id <= 4; ++id) scheduler.submit(own_request(id, 1, 1));
  EXPECT_EQ(scheduler.next().admitted.size(), 3U);
}

TEST(SchedulerTest, PromptsAreReadInTheOrderTheyCameWhateverTheirIds) {
  Scheduler scheduler(kLimits);
  scheduler.submit(own_request(50, 100, 4));
  scheduler.next();
  scheduler.take({{.slot = 0}});
  scheduler.submit(own_request(1, 60, 4));
  EXPECT_EQ(scheduler.next().rows, (std::vector<PlanRow>{{.slot = 1, .fresh = 32}})) << "by what is left";
  scheduler.take({{.slot = 1}});
  EXPECT_EQ(scheduler.next().rows, (std::vector<PlanRow>{{.slot = 0, .fresh = 32}})) << "by age, not by id";
}

TEST(SchedulerTest, AShortPromptDoesNotWaitForALongOne) {
  Scheduler scheduler({.vocabulary = 100,
                       .context_max = 4000,
                       .pages = 400,
                       .budget = {.alone = 32, .with_others = 32},
                       .sequences_max = 3});
  std::map<std::int32_t, std::int64_t> left = {{0, 3000}, {1, 20}};
  scheduler.submit(own_request(1, 3000, 4));
  end_step(scheduler, scheduler.next(), left);
  scheduler.submit(own_request(2, 20, 4));
  int steps = 0;
  for (bool answered = false; !answered; ++steps) {
    ASSERT_LT(steps, 5);
    for (const EngineEvent& event : end_step(scheduler, scheduler.next(), left)) {
      if (const auto* token = std::get_if<TokenEvent>(&event)) answered = answered || token->id == 2;
    }
  }
}

TEST(SchedulerTest, WhatWasPutOffGoesOnWithItsAnswer) {
  // Four pages: two sequences of 17 to 32 tokens each do not grow beyond them together.
  Scheduler scheduler({.vocabulary = 100,
                       .context_max = 64,
                       .pages = 4,
                       .budget = {.alone = 64, .with_others = 64},
                       .sequences_max = 4});
  std::map<std::int32_t, std::int64_t> left = {{0, 15}, {1, 15}};
  scheduler.submit(own_request(1, 15, 45));
  scheduler.submit(own_request(2, 15, 45));
  std::map<std::uint64_t, int> tokens;
  std::int64_t preemptions = 0;
  int ended = 0;
  for (int step = 0; step < 400 && ended < 2; ++step) {
    const StepPlan plan = scheduler.next();
    for (const Admission& one : plan.admitted) {
      left[one.slot] = std::ssize(one.request.prompt) + std::ssize(one.request.answer) - one.cached;
    }
    for (const EngineEvent& event : end_step(scheduler, plan, left)) {
      if (const auto* token = std::get_if<TokenEvent>(&event)) ++tokens[token->id];
      ended += std::holds_alternative<RequestEnded>(event) ? 1 : 0;
      if (const auto* done = std::get_if<engine::StepDone>(&event)) preemptions += done->preemptions;
    }
    const PageBook& pages = scheduler.pages();
    ASSERT_EQ(pages.free_pages() + pages.used_pages() + pages.cached_pages(), 4);
  }
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(tokens[1], 45);
  EXPECT_EQ(tokens[2], 45);
  EXPECT_GT(scheduler.preemptions(), 0);
  EXPECT_EQ(preemptions, scheduler.preemptions()) << "each is told once";
  EXPECT_EQ(scheduler.pages().used_pages(), 0);
}

TEST(SchedulerTest, APrefixOfAnotherRequestIsNotComputedAgain) {
  Scheduler scheduler(kLimits);
  scheduler.submit(request_of(1, 64, 1));
  scheduler.next();
  scheduler.take({{.slot = 0}});
  scheduler.next();
  scheduler.take({made(0, 5)});  // it ends, its pages are kept
  scheduler.submit(request_of(2, 64, 4));
  StepPlan plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 1U);
  EXPECT_EQ(plan.admitted[0].cached, 48) << "the last page is computed again for the sake of its last token";
  EXPECT_EQ(plan.rows[0].fresh, 16);
  EXPECT_EQ(scheduler.tokens_reused(), 48);
  const auto reported = scheduler.take({made(plan.rows[0].slot, 5)});
  ASSERT_TRUE(std::holds_alternative<engine::PromptProgress>(reported.at(0))) << "before the first token";
  EXPECT_EQ(std::get<engine::PromptProgress>(reported[0]).cached, 48);
  Request salted = request_of(3, 64, 4);
  salted.cache_salt = 9;
  scheduler.submit(salted);
  Request all = request_of(4, 64, 4);
  all.logits = LogitsWanted::kAll;
  scheduler.submit(all);
  plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 2U);
  EXPECT_EQ(plan.admitted[0].cached, 0) << "of another user";
  EXPECT_EQ(plan.admitted[1].cached, 0) << "all of its logits are wanted";
}

TEST(SchedulerTest, SeveralAnswersToOnePromptComputeItOnce) {
  Scheduler scheduler({.vocabulary = 100,
                       .context_max = 256,
                       .pages = 32,
                       .budget = {.alone = 32, .with_others = 32},
                       .sequences_max = 8});
  for (std::uint64_t id = 1; id <= 4; ++id) scheduler.submit(request_of(id, 70, 5));
  scheduler.submit(own_request(7, 5, 5));
  std::map<std::int32_t, std::int64_t> left;
  std::int64_t computed = 0, steps = 0;
  std::size_t most_pages = 0;
  for (std::size_t ended = 0; ended < 5; ++steps) {
    ASSERT_LT(steps, 30);
    const StepPlan plan = scheduler.next();
    EXPECT_TRUE(steps > 0 || plan.admitted.size() == 2U) << "one reads the prompt for all; another does not wait";
    for (const Admission& one : plan.admitted) left[one.slot] = std::ssize(one.request.prompt) - one.cached;
    for (const PlanRow& row : plan.rows) computed += row.made ? 0 : row.fresh;
    most_pages = std::max(most_pages, static_cast<std::size_t>(scheduler.pages().used_pages()));
    for (const EngineEvent& event : end_step(scheduler, plan, left)) {
      ended += std::holds_alternative<RequestEnded>(event) ? 1 : 0;
    }
  }
  EXPECT_EQ(computed, 70 + 3 * (70 - 64) + 5);
  EXPECT_LE(most_pages, 4U + 4U + 1U) << "four shared pages, and one of each answer";
}

TEST(SchedulerTest, APageOfAStepThatFailedIsNotShared) {
  Scheduler scheduler(kLimits);
  scheduler.submit(request_of(1, 40, 4));
  scheduler.next();  // fills two pages, but does not end
  scheduler.restart("a rank died");
  EXPECT_EQ(scheduler.next().admitted.at(0).cached, 0);
}

TEST(SchedulerTest, AfterARestartAllGoesOnWhereItStood) {
  Scheduler scheduler(kLimits);
  scheduler.submit(own_request(1, 4, 10));
  scheduler.submit(own_request(2, 4, 10));
  scheduler.next();
  scheduler.take({made(0, 11), made(1, 21)});
  scheduler.next();
  scheduler.restart("a rank died");
  const StepPlan plan = scheduler.next();
  ASSERT_EQ(plan.admitted.size(), 2U);
  EXPECT_EQ(plan.admitted[0].request.answer, (std::vector<text::TokenId>{11}));
  EXPECT_EQ(plan.rows, (std::vector<PlanRow>{{.slot = 0, .fresh = 5}, {.slot = 1, .fresh = 5}}));
  EXPECT_TRUE(plan.released.empty());
}

TEST(SchedulerTest, ARequestThatKillsTheEngineRunsAloneAndThenEnds) {
  Scheduler scheduler(kLimits);
  scheduler.submit(own_request(1, 4, 10));
  scheduler.submit(own_request(2, 4, 10));
  for (int failure = 0; failure < 2; ++failure) {
    EXPECT_EQ(scheduler.next().rows.size(), 2U);
    EXPECT_TRUE(scheduler.restart("illegal instruction").empty());
  }
  EXPECT_EQ(scheduler.next().rows.size(), 1U) << "alone";
  EXPECT_EQ(scheduler.suspect(), 1U);
  const std::vector<EngineEvent> events = scheduler.restart("illegal instruction");
  ASSERT_EQ(events.size(), 1U);
  const auto& ended = std::get<RequestEnded>(events[0]);
  EXPECT_EQ(ended.id, 1U);
  EXPECT_NE(ended.error->message().find("illegal instruction"), std::string::npos);
  std::map<std::int32_t, std::int64_t> left;
  int tokens = 0;
  for (int step = 0; step < 20 && scheduler.has_work(); ++step) {
    for (const EngineEvent& event : end_step(scheduler, scheduler.next(), left)) {
      tokens += std::holds_alternative<TokenEvent>(event) ? 1 : 0;
    }
  }
  EXPECT_EQ(tokens, 10) << "the other answers whole";
}

TEST(SchedulerTest, WhoGetsFurtherIsNotSuspected) {
  Scheduler scheduler(kLimits);
  scheduler.submit(own_request(1, 4, 100));
  std::map<std::int32_t, std::int64_t> left;
  for (int kill = 0; kill < 20; ++kill) {
    for (int step = 0; step < 2; ++step) end_step(scheduler, scheduler.next(), left);
    scheduler.next();
    EXPECT_TRUE(scheduler.restart("killed from outside").empty()) << kill;
  }
}

// The logits of a request's prompt from a position on.
RowResult with_logits(std::int32_t slot, std::int64_t position, std::int64_t rows) {
  return {.slot = slot,
          .logits = LogitsEvent{
              .id = 1, .position = position, .rows = tensor::Tensor::zeros({rows, 100}, tensor::DType::kF32)}};
}

TEST(SchedulerTest, LogitsThatAStepWasToMakeAreNotGivenBeforeItsResult) {
  engine::Scheduler scheduler(kLimits);
  engine::Request request = own_request(1, 40, 4);
  request.logits = LogitsWanted::kAll;
  scheduler.submit(request);
  scheduler.next();
  scheduler.take({engine::with_logits(0, 0, 32)});
  scheduler.next();  // the rest of the prompt, but a rank dies over it
  scheduler.restart("a rank died");
  ASSERT_EQ(scheduler.next().admitted.at(0).request.logits, LogitsWanted::kAll);
  scheduler.take({with_logits(0, 0, 32)});
  scheduler.next();
  engine::RowResult last = with_logits(0, 32, 8);
  last.made = text::SampledToken{.id = 5};
  scheduler.take({last});
  scheduler.restart("a rank died");
  EXPECT_EQ(scheduler.next().admitted.at(0).request.logits, LogitsWanted::kNone) << "all were given";
}

TEST(SchedulerTest, AllRequestsTogetherGetTheLogitsOfOneStep) {
  engine::Scheduler scheduler({.vocabulary = 1 << 20,
                               .context_max = 256,
                               .pages = 64,
                               .budget = {.alone = 512, .with_others = 512},
                               .sequences_max = 8});
  for (std::uint64_t id = 1; id <= 8; ++id) {
    engine::Request request = own_request(id, 40, 4);
    request.logits = LogitsWanted::kAll;
    scheduler.submit(request);
  }
  std::int64_t rows = 0;
  for (const PlanRow& row : scheduler.next().rows) rows += row.fresh;
  EXPECT_EQ(rows, engine::logit_rows_max(1 << 20));
}

TEST(SchedulerTest, ReportsHowFarALongPromptIs) {
  engine::Scheduler scheduler(kLimits);
  scheduler.submit(own_request(1, 40, 4));
  scheduler.next();
  const std::vector<engine::EngineEvent> events = scheduler.take({{.slot = 0}});
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<engine::StepDone>(events[1]).tokens, 32);
  EXPECT_EQ(std::get<engine::PromptProgress>(events[0]).done, 32);
  EXPECT_EQ(std::get<engine::PromptProgress>(events[0]).total, 40);
  scheduler.next();
  EXPECT_TRUE(std::holds_alternative<engine::TokenEvent>(scheduler.take({made(0, 5)}).at(0)));
}

TEST(SchedulerTest, AnAnswerThatHadEndedIsNotTakenUpAgain) {
  engine::Scheduler scheduler(kLimits);
  engine::Request ended = own_request(1, 4, 10);
  ended.answer = {3, 9};
  ended.stop_ids = {9};
  EXPECT_EQ(scheduler.submit(ended)->reason, FinishReason::kStop);
  Request full = own_request(2, 4, 2);
  full.answer = {3, 9};
  EXPECT_EQ(scheduler.submit(full)->reason, FinishReason::kLength);
  EXPECT_FALSE(scheduler.has_work());
}

TEST(SchedulerTest, AnAnswerWithATokenOutsideTheVocabularyIsRefused) {
  engine::Scheduler scheduler(kLimits);
  engine::Request request = own_request(1, 4, 10);
  request.answer = {3, 999'999};
  EXPECT_EQ(scheduler.submit(request)->error->message(),
            "the answer so far has the token 999999, but the vocabulary has 100 ids");
}

TEST(SchedulerTest, ACacheOfOnePageServesWhatFitsAndRefusesTheRest) {
  engine::Scheduler scheduler({.vocabulary = 100,
                               .context_max = 256,
                               .pages = 1,
                               .budget = {.alone = 32, .with_others = 32},
                               .sequences_max = 3});
  EXPECT_TRUE(scheduler.submit(own_request(1, 16, 1))->error.has_value());
  EXPECT_FALSE(scheduler.submit(own_request(2, 1, 100)).has_value());
  EXPECT_FALSE(scheduler.submit(own_request(3, 15, 100)).has_value());
  std::map<std::int32_t, std::int64_t> left;
  std::map<std::uint64_t, int> tokens;
  for (int step = 0; step < 60 && scheduler.has_work(); ++step) {
    const StepPlan plan = scheduler.next();
    for (const Admission& one : plan.admitted) {
      left[one.slot] = std::ssize(one.request.prompt) + std::ssize(one.request.answer) - one.cached;
    }
    for (const EngineEvent& event : end_step(scheduler, plan, left)) {
      if (const auto* token = std::get_if<TokenEvent>(&event)) ++tokens[token->id];
    }
  }
  EXPECT_EQ(tokens[2], 15) << "the answer is cut to what there is";
  EXPECT_EQ(tokens[3], 1);
}

TEST(SchedulerTest, ANumberIsUsedOnceAtATime) {
  engine::Scheduler scheduler(kLimits);
  EXPECT_FALSE(scheduler.submit(own_request(1, 4, 10)).has_value());
  EXPECT_EQ(scheduler.submit(own_request(1, 4, 10))->error->code(), yoke::ErrorCode::kConflict);
}

TEST(SchedulerTest, NoPageIsLostOverTwoThousandRandomRequests) {
  yoke::Random random(11);
  constexpr std::int64_t kPages = 40;
  engine::Scheduler scheduler({.vocabulary = 100,
                               .context_max = 300,
                               .pages = kPages,
                               .budget = {.alone = 64, .with_others = 9},
                               .sequences_max = 16});
  std::map<std::int32_t, std::int64_t> left;
  std::set<std::uint64_t> open;
  std::uint64_t next_id = 1;
  std::uint64_t ended = 0;
  while (ended < 2000) {
    while (open.size() < 24 && next_id <= 2000) {
      engine::Request request =
          request_of(next_id * 0x9e3779b97f4a7c15ULL, 1 + random.below(90),
                     static_cast<std::int64_t>(1 + random.below(60)), static_cast<text::TokenId>(random.below(3)));
      request.stop_ids = {static_cast<text::TokenId>(random.below(100))};
      ++next_id;
      if (scheduler.submit(request))
        ++ended;
      else
        open.insert(request.id);
    }
    if (!open.empty() && random.below(10) == 0) {
      const std::uint64_t id = *open.begin();
      if (scheduler.cancel(id)) ++ended;
      open.erase(id);
    }
    if (random.below(300) == 0) {
      scheduler.next();
      for (const EngineEvent& event : scheduler.restart("a rank died")) {
        open.erase(std::get<RequestEnded>(event).id);
        ++ended;
      }
    }
    const StepPlan plan = scheduler.next();
    for (const Admission& one : plan.admitted) {
      left[one.slot] = std::ssize(one.request.prompt) + std::ssize(one.request.answer) - one.cached;
    }
    for (const EngineEvent& event : end_step(scheduler, plan, left, static_cast<text::TokenId>(random.below(100)))) {
      const auto* const end = std::get_if<RequestEnded>(&event);
      if (end == nullptr) continue;
      open.erase(end->id);
      ++ended;
    }
    const PageBook& pages = scheduler.pages();
    ASSERT_EQ(pages.free_pages() + pages.used_pages() + pages.cached_pages(), kPages);
  }
  EXPECT_EQ(scheduler.pages().used_pages(), 0);
  EXPECT_GT(scheduler.preemptions(), 0);
  EXPECT_GT(scheduler.tokens_reused(), 0);
}

}  // namespace
}  // namespace yoke::engine
