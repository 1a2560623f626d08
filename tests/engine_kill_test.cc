// Ranks that are killed while many requests are under way: 'yoke bench engine' fails where any answer differs from the
// one that the request gets alone.
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "tests/long_run.h"
#include "yoke/base/fields.h"

namespace yoke::tests {
namespace {

using namespace literals;

struct Kills {
  const char* name;
  const char* ranks;
  std::vector<int> victims;  // one after the other; five within a minute are the most
};

class EngineKills : public EngineTest, public testing::WithParamInterface<Kills> {
 protected:
  // The rank's process, when it is there again.
  static pid_t wait_for_rank(const MarkedRun& run, int rank) {
    const Deadline deadline = Deadline::after(30_s);
    while (!deadline.expired()) {
      const std::vector<pid_t> found = run.ranks(rank);
      if (found.size() == 1) return found.front();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    throw Error(ErrorCode::kTimeout, fmt::format("rank {} is not there", rank));
  }

  void run_once() {
    // Long enough for all deaths: a sanitizer makes a token take half a second.
    const std::string tokens = build_info().sanitizers.empty() ? "800" : "20";
    MarkedRun run(scratch.path(), {YOKE_PROGRAM, "bench", "engine", kNano, "--ranks", GetParam().ranks, "--threads",
                                   "1", "--requests", "8", "-n", tokens, "--no-history", "--json"});
    for (const int victim : GetParam().victims) {
      wait_for_rank(run, victim);
      std::this_thread::sleep_for(std::chrono::milliseconds(700));  // it joins, and answers go on
      ASSERT_EQ(kill(wait_for_rank(run, victim), SIGKILL), 0);
    }
    const auto outcome = run.process->wait(Deadline::after(240_s));
    ASSERT_TRUE(outcome);
    ASSERT_EQ(outcome->exit_status, 0) << outcome->err;
    EXPECT_NE(outcome->err.find("restarting the lost ranks"), std::string::npos) << outcome->err;
    const Document reported = parse_json(outcome->out, "out");
    EXPECT_EQ(reported.find("requests")->items.size(), 2U);
  }
};

TEST_P(EngineKills, ChangeNoTokenOfEightRequests) { run_once(); }

TEST_P(EngineKills, SoakChangesNoTokenInTwentyRounds) {
  if (!std::getenv("YOKE_KILL_SOAK")) GTEST_SKIP() << "takes minutes: scripts/soak-engine runs it";
  for (int round = 0; round < 20 && !HasFatalFailure(); ++round) run_once();
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineKills,
                         testing::Values(Kills{"One", "1", {0, 0}}, Kills{"Two", "2", {1, 0}},
                                         Kills{"Stages", "3", {2, 0, 1}}),
                         [](const auto& kills) { return kills.param.name; });

}  // namespace
}  // namespace yoke::tests
