#include "yoke/engine/step_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/engine/engine_threads_testing.h"

namespace yoke::engine {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(StepBook, ReadsWhatTheKernelCountsOfAProcess) {
  MemoryTree tree;
  tree.add_file("/proc/self/task/7/schedstat", "1500000000 250000000 12\n");
  tree.add_file("/proc/self/task/8/schedstat", "500000000 750000000 3\n");
  tree.add_file("/proc/self/task/9/schedstat", "");  // it has ended meanwhile
  tree.add_file("/proc/self/cgroup", "4:cpu,cpuacct:/desk/node-2\n0::/\n");
  tree.add_file("/sys/fs/cgroup/cpu,cpuacct/desk/node-2/cpu.stat",
                "nr_periods 9\nnr_throttled 4\nthrottled_time 3000000000\n");
  tree.add_file("/sys/fs/cgroup/cpu,cpuacct/desk/cpu.stat", "throttled_time 1\n");
  tree.add_file("/proc/stat", "cpu  10 0 0 0 0 0 0 400 0 0\ncpu0 5 0\ncpu1 5 0\nintr 1\n");
  const ProcessTimes times = read_process_times(tree);
  EXPECT_DOUBLE_EQ(times.run, 2.0);
  EXPECT_DOUBLE_EQ(times.wait, 1.0);
  EXPECT_DOUBLE_EQ(times.throttled, 3.0);
  EXPECT_DOUBLE_EQ(times.stolen, 2.0);
  EXPECT_DOUBLE_EQ(times.busy, 0.1);
  const ProcessTimes none = read_process_times(MemoryTree());
  EXPECT_EQ(none.run + none.wait + none.throttled + none.stolen, 0);
}

// Two ranks of one machine compute for 2 s each. Where others had half of its busy time, half of the waiting is theirs.
TEST(StepBook, WaitingForAProcessorCountsAsFarAsOthersHadIt) {
  const auto page = [](int rank, const std::string& busy) {
    const std::string sums = R"({"steps":0,"tokens":0,"seconds":0,"weights":0,"cache":0,"others":0,"exchange":0,)"
                             R"("exchanges":0,"exchange_bytes":0})";
    return R"({"account":{"rank":)" + std::to_string(rank) + R"(,"node":"n","machine":"m","threads":1,"decode":)" +
           sums + R"(,"prefill":)" + sums + R"(,"mixed":)" + sums +
           R"(,"wall":4,"processor_time":2,"processor_wait":1},"machine_busy":)" + busy + "}";
  };
  const auto wait_of = [&](const std::string& busy) {
    return join_books({page(0, busy), page(1, busy)}, "direct").ranks.at(1).processor_wait;
  };
  EXPECT_DOUBLE_EQ(wait_of("8"), 0.5);
  EXPECT_DOUBLE_EQ(wait_of("4"), 0);
  EXPECT_DOUBLE_EQ(wait_of("3.9"), 0) << "ticks are rounded";
}

// Two steps of two exchanges: what both ranks took is the exchange, what one took longer it waited.
TEST(StepBook, AnExchangeIsItsShortestTimeAndTheRestIsWaiting) {
  const auto page = [](int rank, const std::string& times) {
    return R"({"account":{"rank":)" + std::to_string(rank) +
           R"(,"node":"n","threads":1,"decode":{"steps":2,"tokens":2,"seconds":1,"weights":0,"cache":0,"others":0,)"
           R"("exchange":1,"exchanges":4,"exchange_bytes":4},"prefill":{"steps":0,"tokens":0,"seconds":0,"weights":0,)"
           R"("cache":0,"others":0,"exchange":0,"exchanges":0,"exchange_bytes":0},"mixed":{"steps":0,"tokens":0,)"
           R"("seconds":0,"weights":0,"cache":0,"others":0,"exchange":0,"exchanges":0,"exchange_bytes":0},"wall":1},)"
           R"("decode":)" +
           times + "}";
  };
  const spec::StepAccount account = join_books({page(0, "[0.1,0.5,0.1,0.5]"), page(1, "[0.3,0.1,0.3,0.1]")}, "direct");
  EXPECT_EQ(account.ranks.size(), 2U);
  EXPECT_DOUBLE_EQ(account.decode.seconds, 0.2);  // 0.4 of all, in two steps
  EXPECT_THAT(account.decode.waiting, ElementsAre(DoubleNear(0.4, 1e-9), DoubleNear(0.2, 1e-9)));
  EXPECT_TRUE(account.prefill.waiting.empty());
}

TEST(StepBook, AnEngineTellsWhatItsStepsWereMadeOf) {
  const std::filesystem::path folder = std::filesystem::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32";
  for (const int ranks : {1, 2, 3}) {
    Engine engine({.model = folder, .chunk_tokens = 4}, ranks);
    Request request{.id = 1, .prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, .answer_max = 30};
    request.sampling.temperature = 0;
    const Answer before = engine.ask(request);
    engine.connection().ask_account();
    std::optional<spec::StepAccount> account;
    while (!account) {
      const auto event = engine.connection().next(Deadline::after(Seconds{60}));
      ASSERT_TRUE(event.has_value());
      if (const auto* reported = std::get_if<EngineAccount>(&*event)) account = reported->account;
    }
    ASSERT_EQ(account->ranks.size(), static_cast<std::size_t>(ranks));
    for (const spec::RankAccount& rank : account->ranks) {
      EXPECT_GT(rank.decode.steps, 20) << ranks;
      EXPECT_GT(rank.decode.weights, 0);
      EXPECT_GT(rank.decode.weight_bytes, 0);
      EXPECT_LE(rank.decode.computing() + rank.decode.exchange, rank.decode.seconds * 1.0001);
      // A stage may take over between its steps.
      EXPECT_TRUE(ranks == 3 || (rank.decode.exchanges > 0) == (ranks == 2)) << ranks;
      EXPECT_GT(rank.weights_held, 0);
    }
    EXPECT_EQ(account->decode.waiting.size(), ranks == 2 ? 2U : 0U);  // three are stages
    // It costs no answer.
    request.id = 2;
    EXPECT_EQ(engine.ask(request).tokens, before.tokens);
  }
}

}  // namespace
}  // namespace yoke::engine
