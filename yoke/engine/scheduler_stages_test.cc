// The scheduler with several steps under way, and a model of what ranks hold: tables of sequences and pages of tokens.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "yoke/base/rng_testing.h"
#include "yoke/engine/scheduler.h"

namespace yoke::engine {
namespace {

using Tokens = std::vector<text::TokenId>;

// The token that a model without any error gives after these.
text::TokenId token_after(const Tokens& tokens) {
  std::uint64_t hash = 17;
  for (const text::TokenId id : tokens) hash = (hash ^ static_cast<std::uint64_t>(id)) * 0x9e3779b97f4a7c15ULL;
  return static_cast<text::TokenId>((hash >> 40) % 100);
}

Tokens answer_of(const Request& request) {
  Tokens all = request.prompt, answer;
  while (std::ssize(answer) < request.answer_max) {
    answer.push_back(token_after(all));
    all.push_back(answer.back());
    if (std::find(request.stop_ids.begin(), request.stop_ids.end(), answer.back()) != request.stop_ids.end()) break;
  }
  return answer;
}

// One stage: what it knows and holds after the plans that it has carried out. All stages go through the same.
class SimulatedStage {
 public:
  std::vector<RowResult> run(const StepPlan& plan) {
    for (const std::int32_t slot : plan.released) EXPECT_EQ(table_.erase(slot), 1U);
    for (const Admission& one : plan.admitted) {
      Sequence sequence{.tokens = one.request.prompt, .pages = {}, .cached = one.cached};
      sequence.tokens.insert(sequence.tokens.end(), one.request.answer.begin(), one.request.answer.end());
      EXPECT_TRUE(table_.emplace(one.slot, sequence).second);
    }
    for (const PageGrant& grant : plan.grants) {
      Tokens& pages = table_.at(grant.slot).pages;
      pages.insert(pages.end(), grant.pages.begin(), grant.pages.end());
    }
    std::vector<RowResult> results;
    for (const PlanRow& row : plan.rows) results.push_back(run_row(row));
    return results;
  }

 private:
  struct Sequence {
    Tokens tokens;
    std::vector<std::int32_t> pages;
    std::int64_t cached = 0;
  };
  RowResult run_row(const PlanRow& row) {
    Sequence& sequence = table_.at(row.slot);
    if (row.made) sequence.tokens.push_back(*row.made);
    const auto place = [&](std::int64_t index) -> text::TokenId& {
      return pages_[{sequence.pages.at(static_cast<std::size_t>(index / kPageTokens)), index % kPageTokens}];
    };
    for (std::int64_t end = sequence.cached + row.fresh; sequence.cached < end; ++sequence.cached) {
      place(sequence.cached) = sequence.tokens.at(static_cast<std::size_t>(sequence.cached));
    }
    Tokens seen;
    for (std::int64_t i = 0; i < sequence.cached; ++i) seen.push_back(place(i));
    RowResult result{.slot = row.slot};
    if (sequence.cached == std::ssize(sequence.tokens)) result.made = text::SampledToken{.id = token_after(seen)};
    return result;
  }

  std::map<std::int32_t, Sequence> table_;
  std::map<std::pair<std::int32_t, std::int64_t>, text::TokenId> pages_;
};

// A scheduler and its stages: a step's results come when the last stage has computed it.
class Pipeline {
 public:
  explicit Pipeline(SchedulerLimits limits) : stages_(static_cast<std::size_t>(limits.stages)), scheduler(limits) {}

  StepPlan step() {
    StepPlan plan = scheduler.next();
    under_way_.push_back(stage_.run(plan));
    std::vector<RowResult> results;
    if (under_way_.size() == stages_) {
      results = under_way_.front();
      under_way_.pop_front();
    }
    for (const EngineEvent& event : scheduler.take(results)) take(event);
    return plan;
  }
  void restart() {
    scheduler.next();
    for (const EngineEvent& event : scheduler.restart("a rank died")) take(event);
    under_way_.clear();
    stage_ = {};
  }
  void take(const EngineEvent& event) {
    if (const auto* token = std::get_if<TokenEvent>(&event)) answers[token->id].push_back(token->token.id);
    if (const auto* end = std::get_if<RequestEnded>(&event)) ended.emplace(end->id, *end);
  }

 private:
  std::size_t stages_;
  SimulatedStage stage_;
  std::deque<std::vector<RowResult>> under_way_;

 public:
  Scheduler scheduler;
  std::map<std::uint64_t, Tokens> answers;
  std::map<std::uint64_t, RequestEnded> ended;
};

SchedulerLimits limits_of(int stages) {
  return {.vocabulary = 100,
          .context_max = 300,
          .pages = 40,
          .budget = {.alone = 32, .with_others = 9},
          .sequences_max = 16,
          .stages = stages};
}

TEST(SchedulerStages, AnswersAreSpreadOverTheStepsUnderWay) {
  Pipeline pipeline(limits_of(3));
  for (std::uint64_t id = 1; id <= 6; ++id) {
    pipeline.scheduler.submit({.id = id, .prompt = {static_cast<text::TokenId>(id)}, .answer_max = 60});
  }
  for (int step = 0; step < 30; ++step) pipeline.step();
  std::vector<std::set<std::int32_t>> slots;
  for (int step = 0; step < 6; ++step) {
    const StepPlan plan = pipeline.step();
    EXPECT_EQ(plan.rows.size(), 2U) << step;
    slots.emplace_back();
    for (const PlanRow& row : plan.rows) slots.back().insert(row.slot);
  }
  EXPECT_EQ(slots[0], slots[3]);
  EXPECT_NE(slots[0], slots[1]);
  EXPECT_NE(slots[1], slots[2]);
}

TEST(SchedulerStages, ALongPromptIsReadByAllStagesAtOnce) {
  Pipeline pipeline(limits_of(3));
  pipeline.scheduler.submit({.id = 1, .prompt = Tokens(80, 7), .answer_max = 3});
  for (const int fresh : {32, 32, 16}) {
    const StepPlan plan = pipeline.step();
    ASSERT_EQ(plan.rows.size(), 1U) << "no stage waits for the result of another";
    EXPECT_EQ(plan.rows[0].fresh, fresh);
  }
  EXPECT_TRUE(pipeline.step().rows.empty()) << "the next token is not known yet";
}

TEST(SchedulerStages, WhatComesForACancelledRequestIsNotGivenToTheNextOneInItsSlot) {
  Pipeline pipeline(limits_of(3));
  const Request second{.id = 2, .prompt = {1, 2, 3}, .answer_max = 5};
  pipeline.scheduler.submit({.id = 1, .prompt = {9, 9}, .answer_max = 5});
  ASSERT_EQ(pipeline.step().rows[0].slot, 0);
  pipeline.scheduler.cancel(1);
  pipeline.scheduler.submit(second);
  ASSERT_EQ(pipeline.step().admitted.at(0).slot, 0);
  for (int step = 0; step < 30; ++step) pipeline.step();
  EXPECT_EQ(pipeline.answers[2], answer_of(second));
  EXPECT_FALSE(pipeline.scheduler.has_work());
}

class SchedulerOnStages : public testing::TestWithParam<int> {};

TEST_P(SchedulerOnStages, AnswersRandomRequestsAsAloneAndLosesNoPage) {
  Random random(static_cast<std::uint64_t>(40 + GetParam()));
  Pipeline pipeline(limits_of(GetParam()));
  std::map<std::uint64_t, Request> requests;
  std::set<std::uint64_t> cancelled;
  int steps = 0;
  while (pipeline.ended.size() < 2000) {
    while (requests.size() - pipeline.ended.size() < 24 && requests.size() < 2000) {
      Request request{.id = (requests.size() + 1) * 0x9e3779b97f4a7c15ULL,
                      .prompt = Tokens(1 + random.below(90), static_cast<text::TokenId>(random.below(3))),
                      .answer_max = static_cast<std::int64_t>(1 + random.below(60))};
      request.prompt.back() = static_cast<text::TokenId>(random.below(100));
      request.stop_ids = {static_cast<text::TokenId>(random.below(100))};
      requests.emplace(request.id, request);
      if (const auto refused = pipeline.scheduler.submit(request)) pipeline.take(*refused);
    }
    if (random.below(10) == 0) {
      const auto some = std::next(requests.begin(), static_cast<std::ptrdiff_t>(random.below(requests.size())));
      if (const auto ended = pipeline.scheduler.cancel(some->first)) {
        pipeline.take(*ended);
        cancelled.insert(some->first);
      }
    }
    // Not so often that a request is suspected: it must get further in between.
    if (++steps % 300 == 0) pipeline.restart();
    pipeline.step();
    const PageBook& pages = pipeline.scheduler.pages();
    ASSERT_EQ(pages.free_pages() + pages.used_pages() + pages.cached_pages(), 40);
  }
  for (const auto& [id, request] : requests) {
    const Tokens& got = pipeline.answers[id];
    Tokens wanted = answer_of(request);
    if (cancelled.contains(id)) wanted.resize(std::min(wanted.size(), got.size()));
    EXPECT_EQ(got, wanted) << id;
    EXPECT_FALSE(pipeline.ended.at(id).error.has_value()) << id;
  }
  EXPECT_EQ(pipeline.scheduler.pages().used_pages(), 0);
  EXPECT_GT(pipeline.scheduler.preemptions(), 0);
  EXPECT_GT(pipeline.scheduler.tokens_reused(), 0);
}
INSTANTIATE_TEST_SUITE_P(Stages, SchedulerOnStages, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace yoke::engine
