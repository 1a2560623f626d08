// Engines of threads; those of processes are in tests/run_test.cc.
#include "yoke/serve/engine_host.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/interrupt.h"

namespace yoke::serve {
namespace {

using namespace literals;

EngineHostSpec threads(int ranks) {
  return {.engine = {.model = std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano", .threads = 1},
          .transport = rank::Transport::kThreads,
          .ranks = ranks,
          .cluster = {}};
}

TEST(EngineHost, AsksRanksThatAreThreads) {
  EngineHost host(threads(2));
  host.connection().submit(
      {.id = 5, .prompt = {2043, 668, 617, 1455, 371, 1000, 30}, .answer_max = 3, .sampling = {.temperature = 0}});
  std::vector<text::TokenId> tokens;
  std::optional<engine::EngineReady> ready;
  while (const auto event = host.connection().next(Deadline::after(30_s))) {
    if (const auto* one = std::get_if<engine::EngineReady>(&*event)) ready = *one;
    if (const auto* token = std::get_if<engine::TokenEvent>(&*event)) tokens.push_back(token->token.id);
    if (std::holds_alternative<engine::RequestEnded>(*event)) break;
  }
  EXPECT_EQ(tokens.size(), 3U);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->ranks, 2);
  EXPECT_EQ(ready->nodes.size(), 2U);
}

// Until the client is told that the engine fails.
void run_to_failure(EngineHostSpec spec) {
  EngineHost host(std::move(spec));
  while (host.connection().next(Deadline::after(30_s))) {
  }
}

TEST(EngineHost, ReportsWhyAnEngineFails) {
  EXPECT_ERROR(run_to_failure(threads(9)), ErrorCode::kInvalid, "9 stages cannot share");
  EngineHostSpec nowhere = threads(2);
  nowhere.engine.model = "/no/model";
  EXPECT_ERROR(run_to_failure(nowhere), ErrorCode::kNotFound, "there is no model folder '/no/model'");
}

TEST(EngineHost, RunsOnTheHeadOnly) {
  EngineHostSpec spec = threads(0);
  spec.transport = rank::Transport::kAuto;
  spec.cluster.emplace();
  spec.cluster->name = "desk";
  spec.cluster->nodes = {{.name = "spark-1", .address = "203.0.113.8"}, {.name = "spark-2", .address = "203.0.113.9"}};
  EXPECT_ERROR(run_to_failure(spec), ErrorCode::kUsage, "this machine is not spark-1");
}

TEST(EngineHost, HasOneRankForEachNodeUnlessSaidOtherwise) {
  EngineHostSpec spec = threads(0);
  EXPECT_EQ(rank_count(spec), 1);
  spec.transport = rank::Transport::kAuto;
  spec.cluster.emplace();
  spec.cluster->nodes = {{.name = "a", .address = "10.0.0.1"}, {.name = "b", .address = "10.0.0.2"}};
  EXPECT_EQ(rank_count(spec), 2);
  spec.ranks = 4;
  EXPECT_EQ(rank_count(spec), 4);
  spec.place = job::RankPlace{.rank = 0, .size = 3};
  EXPECT_EQ(rank_count(spec), 3);
}

TEST(EngineHost, HoldsInterruptsForItsOwner) {
  EngineHost host(threads(1));
  kill(getpid(), SIGINT);
  std::optional<int> taken;
  const Deadline deadline = Deadline::after(5_s);
  while (!taken && !deadline.expired()) taken = host.take_interrupt();
  EXPECT_EQ(taken, SIGINT);
  EXPECT_EQ(interrupt_signal(), 0);
}

}  // namespace
}  // namespace yoke::serve
