#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/json.h"
#include "yoke/why/evaluate_engine.h"
#include "yoke/why/evaluate_rows.h"
#include "yoke/why/evaluate_run.h"

namespace yoke::why {
namespace {

using spec::RailState;
using spec::RailUse;
using spec::RankAccount;
using spec::StepAccount;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two ranks on two nodes with two rails of 2 Gb/s: a step of 10 ms, of which 6 read weights and 2 exchange.
RailUse healthy_rail(const std::string& name, int peer) {
  const std::string net = name == "A" ? "192.168.100." : "192.168.101.";
  return {.rail = name,
          .peer = peer,
          .peer_node = peer == 0 ? "spark-1" : "spark-2",
          .local = net + (peer == 0 ? "2" : "1"),
          .remote = net + (peer == 0 ? "1" : "2"),
          .interface = name == "A" ? "enp1s0f0np0" : "enP2p1s0f0np0",
          .route = name == "A" ? "enp1s0f0np0" : "enP2p1s0f0np0",
          .bytes = 2e8,
          .busy = 1,
          .long_bytes = 1e8,
          .long_busy = 0.42,
          .segments = 30000,
          .segment_bytes = 8948};
}

RankAccount healthy_rank(int rank) {
  RankAccount account{.rank = rank, .node = rank == 0 ? "spark-1" : "spark-2", .machine = rank == 0 ? "m1" : "m2"};
  account.decode = {.steps = 100,
                    .tokens = 100,
                    .seconds = 1.0,
                    .weights = 0.6,
                    .cache = 0.05,
                    .others = 0.05,
                    .exchange = 0.22,
                    .exchanges = 3300,
                    .exchange_bytes = 3300 * 4096.0,
                    .weight_bytes = 6e9};
  account.prefill = {.steps = 20,
                     .tokens = 2000,
                     .seconds = 2.0,
                     .weights = 1.4,
                     .cache = 0.1,
                     .others = 0.1,
                     .exchange = 0.3,
                     .exchanges = 660,
                     .exchange_bytes = 660 * 409600.0};
  account.wall = 3;
  account.processor_time = 2.8;
  account.processor_wait = 0.05;
  account.weights_held = 60e6;
  account.rails = {healthy_rail("A", 1 - rank), healthy_rail("B", 1 - rank)};
  return account;
}

RunQuestion healthy_question() {
  RunQuestion question;
  question.account = {.transport = "direct", .ranks = {healthy_rank(0), healthy_rank(1)}, .decode = {}, .prefill = {}};
  question.account.decode = {.seconds = 0.002, .waiting = {0.0002, 0.0001}};
  question.account.prefill = {.seconds = 0.014, .waiting = {0.001, 0.001}};
  question.rails = {.rails = {"A", "B"}, .rate = 2e9, .mtu = 9000};
  question.planned = PlannedRun{.decode = {.weights = 0.006, .cache = 0.0005, .fixed = 0.001, .exchange = 0.002},
                                .prefill_computing = 0.0008,
                                .prefill_exchange = 0.015,
                                .spread = 2,
                                .is_calibrated = true,
                                .read_rate = 12e9};
  question.options = " --lab desk";
  return question;
}

TEST(Why, BlamesNothingWhereNothingIsOff) {
  const Answer answer = evaluate_run(healthy_question());
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_THAT(answer.limit, HasSubstr("memory bandwidth"));
  EXPECT_THAT(answer.limit, HasSubstr("10 GB/s of 12 GB/s"));
  ASSERT_THAT(answer.steps, SizeIs(2));
  // The terms of a step are the step.
  double sum = 0;
  for (const TermRow& row : answer.steps[0].rows) sum += row.measured;
  EXPECT_NEAR(sum, answer.steps[0].seconds, 1e-9);
}

TEST(Why, NamesARailThatCarriesNothing) {
  RunQuestion question = healthy_question();
  for (RankAccount& rank : question.account.ranks) rank.rails[1].state = RailState::kMissing;
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kRailUnused);
  EXPECT_EQ(answer.blames[0].what, "Rail B carries nothing between spark-1 and spark-2.");
  EXPECT_EQ(answer.blames[0].next, "yoke check --lab desk");
}

TEST(Why, NamesARailThatIsSlowInOneDirection) {
  RunQuestion question = healthy_question();
  question.account.ranks[1].rails[0].long_busy = 3.4;  // 235 Mb/s
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kRailSlow);
  EXPECT_THAT(answer.blames[0].where, Contains("rail A"));
  EXPECT_THAT(answer.blames[0].evidence, HasSubstr("From spark-2 it carried 235 Mb/s of 2 Gb/s"));
}

TEST(Why, ARailMayCarryLessThanABurstOfTheOtherWithinItsRate) {
  RunQuestion question = healthy_question();
  question.account.ranks[0].rails[1].long_busy = 0.05;  // 16 Gb/s for a moment
  EXPECT_THAT(evaluate_run(question).blames, IsEmpty());
  question.rails.rate = 0;
  question.account.ranks[0].rails[1].long_busy = 0.1;  // the other is at 0.24 of it
  EXPECT_THAT(evaluate_run(question).blames, IsEmpty());
  question.account.ranks[0].rails[0].long_busy = 3;
  EXPECT_THAT(evaluate_run(question).blames, SizeIs(1));
}

TEST(Why, NamesASlowRailThatHasNoOtherBesideIt) {
  RunQuestion question = healthy_question();
  RailUse& use = question.account.ranks[0].rails[0];
  question.account.ranks[0].rails[1].long_bytes = 0;  // messages are not long enough for both rails
  use.long_bytes = 4e6;
  use.long_busy = 0.13;  // 246 Mb/s
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kRailSlow);
  EXPECT_THAT(answer.blames[0].evidence, HasSubstr("From spark-1 it carried 246 Mb/s of 2 Gb/s while it was busy."));
  question.rails.rate = 100e9;  // which TCP on a processor does not reach
  EXPECT_THAT(evaluate_run(question).blames, IsEmpty());
}

TEST(Why, DoesNotJudgeARailByFewBytes) {
  RunQuestion question = healthy_question();
  question.account.ranks[0].rails[1].long_bytes = 1e5;
  question.account.ranks[0].rails[1].long_busy = 1;
  EXPECT_THAT(evaluate_run(question).blames, IsEmpty());
}

TEST(Why, NamesARouteOverAnotherNetwork) {
  RunQuestion question = healthy_question();
  for (RailUse& use : question.account.ranks[1].rails) use.route = "enP7s7";
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kRailRoute);
  EXPECT_EQ(answer.blames[0].what, "spark-2 sends the data of rail A and B over another network.");
}

TEST(Why, ARingMayLeaveByAnotherRail) {
  RunQuestion question = healthy_question();
  question.account.ranks[1].rails[0].route = "enP2p1s0f0np0";
  EXPECT_THAT(evaluate_run(question).blames, IsEmpty());
}

TEST(Why, NamesSmallPackets) {
  RunQuestion question = healthy_question();
  for (RankAccount& rank : question.account.ranks) rank.rails[0].segment_bytes = 1448;
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kSmallPackets);
}

TEST(Why, NamesPacketLoss) {
  RunQuestion question = healthy_question();
  question.account.ranks[0].rails[0].segments_again = 1500;
  ASSERT_THAT(evaluate_run(question).blames, SizeIs(1));
  EXPECT_EQ(evaluate_run(question).blames[0].cause, Cause::kPacketLoss);
}

TEST(Why, NamesTheManagementNetworkAsTransport) {
  RunQuestion question = healthy_question();
  for (RankAccount& rank : question.account.ranks) {
    rank.rails.resize(1);
    rank.rails[0].rail = "management";
    rank.rails[0].interface = rank.rails[0].route = "enP7s7";
    rank.rails[0].segment_bytes = 8948;
  }
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kTransport);
}

TEST(Why, NamesAQuotaBeforeLoadAndBeforeASlowRank) {
  RunQuestion question = healthy_question();
  RankAccount& slow = question.account.ranks[1];
  slow.throttled = 1.4;
  slow.processor_wait = 1.5;
  slow.decode.weights = 2.4;
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kQuota);
  EXPECT_THAT(answer.blames[0].where, Contains("spark-2"));
}

TEST(Why, NamesOtherProgramsThatTakeTheProcessors) {
  RunQuestion question = healthy_question();
  question.account.ranks[0].processor_wait = 1.4;
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kLoad);
  EXPECT_THAT(answer.blames[0].what, HasSubstr("spark-1"));
}

TEST(Why, NamesARankThatComputesLongerThanTheOthers) {
  RunQuestion question = healthy_question();
  question.account.ranks[1].decode.weights = 1.1;
  question.account.decode.waiting = {0.005, 0};
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kSlowRank);
  EXPECT_THAT(answer.blames[0].what, HasSubstr("spark-2 computes 1.7 times as long as spark-1"));
}

TEST(Why, RanksWithOtherPartsAreNotCompared) {
  RunQuestion question = healthy_question();
  question.account.ranks[1].decode.weights = 1.1;
  question.account.ranks[1].weights_held = 120e6;  // a stage with twice the layers
  EXPECT_THAT(evaluate_run(question).blames, IsEmpty());
}

TEST(Why, NamesSmallPagesOfLargeWeights) {
  RunQuestion question = healthy_question();
  RankAccount& rank = question.account.ranks[0];
  rank.weights_held = 4e9;
  question.account.ranks[1].weights_held = 4e9;
  question.account.ranks[1].memory_anonymous = question.account.ranks[1].memory_huge = 4e9;
  rank.memory_anonymous = 4.1e9;
  rank.memory_huge = 2e6;
  rank.huge_pages = "never";
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kSmallPages);
}

TEST(Why, NamesATermBeyondTheCalibratedPlan) {
  RunQuestion question = healthy_question();
  question.account.decode.seconds = 0.031;  // the all-reduce of a step
  question.account.ranks[0].decode.seconds += 2.9;
  question.account.ranks[0].decode.exchange += 2.9;
  const Answer answer = evaluate_run(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kTermOff);
  EXPECT_EQ(answer.blames[0].term, "all-reduce");
  EXPECT_THAT(answer.blames[0].what, HasSubstr("31 ms"));
  EXPECT_THAT(answer.blames[0].what, HasSubstr("expected 2 ms"));
  EXPECT_EQ(answer.blames[0].next, "yoke check --lab desk");
}

TEST(Why, DoesNotBlameATermByAPlanThatWasNeverCalibrated) {
  RunQuestion question = healthy_question();
  question.planned->is_calibrated = false;
  question.account.decode.seconds = 0.031;
  const Answer answer = evaluate_run(question);
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_THAT(answer.notes, Contains(HasSubstr("yoke bench calibrate --lab desk")));
}

TEST(Why, DoesNotBlameATermOnABusyMachine) {
  RunQuestion question = healthy_question();
  question.account.decode.seconds = 0.031;
  question.account.ranks[0].processor_wait = 0.5;  // 15%
  const Answer answer = evaluate_run(question);
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_THAT(answer.notes, Contains(HasSubstr("processors were not free")));
}

TEST(Why, HealthyRunsAreABetterExpectationThanThePlan) {
  RunQuestion question = healthy_question();
  question.planned->decode.exchange = 0.0001;  // far too hopeful
  question.account.ranks[0].decode.exchange = 0.5;
  question.account.decode.seconds = 0.005;
  EXPECT_THAT(evaluate_run(question).blames, SizeIs(1));
  question.healthy = {question.account, question.account, question.account};
  const Answer answer = evaluate_run(question);
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_EQ(answer.steps[0].rows[3].expected->source, "3 healthy runs");
}

TEST(Why, SaysWhichLimitARunIsAt) {
  RunQuestion question = healthy_question();
  for (RankAccount& rank : question.account.ranks) {
    rank.decode.weights = 0.1;
    rank.decode.seconds = 0.5;
  }
  question.planned.reset();
  EXPECT_THAT(evaluate_run(question).limit, HasSubstr("latency of the link"));
}

TEST(Why, AnAccountWithoutRanksIsNoQuestion) {
  const Answer answer = evaluate_run({});
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_THAT(answer.notes, Contains(HasSubstr("no account")));
}

TEST(Why, AQuestionIsTheSameAfterItsRoundTrip) {
  const RunQuestion question = healthy_question();
  const auto read = from_json<RunQuestion>(parse_json(print_json(to_json(question)), "test"));
  EXPECT_EQ(print_json(to_json(read)), print_json(to_json(question)));
  EXPECT_THAT(answer_text(evaluate_run(read)), HasSubstr("Nothing is off. At its limit: memory bandwidth"));
}

EngineQuestion healthy_engine() {
  EngineQuestion question;
  question.engine = {.kind = "vllm", .model = "m", .seconds = 10, .tokens_per_second = 40, .running = 1};
  question.rails = {{.node = "spark-1", .rail = "A", .interface = "enp1s0f0np0", .bytes_per_second = 5e7},
                    {.node = "spark-1", .rail = "B", .interface = "enP2p1s0f0np0", .bytes_per_second = 4.5e7}};
  question.gpus = {{.node = "spark-1", .index = 0, .busy = 0.9}};
  question.planned = PlannedEngine{.step = {.weights = 0.018, .cache = 0.001, .fixed = 0.002, .exchange = 0.004},
                                   .rate = 40,
                                   .low = 30,
                                   .high = 50,
                                   .prefill_rate = 2000};
  return question;
}

TEST(WhyEngine, BlamesNothingWhereNothingIsOff) {
  const Answer answer = evaluate_engine(healthy_engine());
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_THAT(answer.limit, HasSubstr("memory bandwidth"));
}

TEST(WhyEngine, NamesARailThatCarriesNothing) {
  EngineQuestion question = healthy_engine();
  question.rails[1].bytes_per_second = 100;
  ASSERT_THAT(evaluate_engine(question).blames, SizeIs(1));
  EXPECT_EQ(evaluate_engine(question).blames[0].cause, Cause::kRailUnused);
  EXPECT_EQ(evaluate_engine(question).blames[0].what, "Rail B of spark-1 carries nothing.");
}

TEST(WhyEngine, RailsWithoutTrafficAreNotJudged) {
  EngineQuestion question = healthy_engine();
  question.rails[0].bytes_per_second = 5e4;
  question.rails[1].bytes_per_second = 0;
  EXPECT_THAT(evaluate_engine(question).blames, IsEmpty());
}

TEST(WhyEngine, NamesAFullCacheTheQueueAndPrompts) {
  EngineQuestion question = healthy_engine();
  question.engine.waiting = 12;
  EXPECT_EQ(evaluate_engine(question).blames.at(0).cause, Cause::kQueue);
  question.engine.cache_usage = 0.99;
  EXPECT_EQ(evaluate_engine(question).blames.at(0).cause, Cause::kCacheFull);
  question = healthy_engine();
  question.engine.prompt_tokens_per_second = 1500;
  EXPECT_EQ(evaluate_engine(question).blames.at(0).cause, Cause::kPrompts);
}

TEST(WhyEngine, NamesAClockThatIsHeldDown) {
  EngineQuestion question = healthy_engine();
  question.gpus[0].held_down = 0.6;
  question.gpus[0].clock_limits = {"thermal"};
  EXPECT_EQ(evaluate_engine(question).blames.at(0).cause, Cause::kGpuClock);
  EXPECT_THAT(evaluate_engine(question).blames.at(0).evidence, HasSubstr("60% of the time: thermal"));
}

TEST(WhyEngine, NamesARateBelowThePlanWithItsLongestTerm) {
  EngineQuestion question = healthy_engine();
  question.engine.tokens_per_second = 9;
  const Answer answer = evaluate_engine(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].cause, Cause::kRateOff);
  EXPECT_THAT(answer.blames[0].evidence, HasSubstr("reading the weights"));
}

TEST(WhyEngine, MetricsOfAnotherVersionAreSaidToBe) {
  EngineQuestion question = healthy_engine();
  question.engine.tokens_per_second = 0;
  question.engine.is_counted = false;
  const Answer answer = evaluate_engine(question);
  EXPECT_THAT(answer.blames, IsEmpty());
  EXPECT_THAT(answer.notes, Contains(HasSubstr("another version")));
}

TEST(WhyBench, NamesTheRowThatIsWorst) {
  BenchQuestion question{.benchmark = "all-reduce",
                         .rows = {{.name = "float sum, 8 bytes", .unit = "us", .value = 60, .predicted = 50},
                                  {.name = "float sum, 1 MB", .unit = "us", .value = 9000, .predicted = 2400}}};
  const Answer answer = evaluate_bench(question);
  ASSERT_THAT(answer.blames, SizeIs(1));
  EXPECT_EQ(answer.blames[0].what, "all-reduce is 3.8 times as slow as expected.");
  EXPECT_THAT(answer.blames[0].evidence, HasSubstr("1 MB"));
  EXPECT_EQ(answer.blames[0].next, "yoke check");
}

TEST(WhyBench, EarlierRunsCountMoreThanThePlan) {
  BenchQuestion question{
      .benchmark = "memory",
      .rows = {{.name = "read", .unit = "GB/s", .value = 10, .predicted = 40, .before = {9, 11, 12}}}};
  EXPECT_THAT(evaluate_bench(question).blames, IsEmpty());
  question.rows[0].value = 4;
  EXPECT_THAT(evaluate_bench(question).blames, SizeIs(1));
  question.rows[0] = {.name = "read", .unit = "GB/s", .value = 10};
  EXPECT_THAT(evaluate_bench(question).notes, Contains(HasSubstr("Nothing was expected")));
}

}  // namespace
}  // namespace yoke::why
