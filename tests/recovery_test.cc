// How a group of ranks gets over deaths, as a person meets it: yoke bench recovery, and ranks that die at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program.h"
#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::Not;

Outcome recovery_in(const ScratchDir& scratch, const std::vector<std::string>& arguments) {
  return run_yoke(joined({"bench"}, arguments),
                  {.environment = {{"XDG_DATA_HOME", scratch.path()}}, .folder = scratch.path(), .timeout = 60_s});
}

TEST(BenchRecovery, KeepsItsRunsInTheHistory) {
  const ScratchDir scratch;
  const Outcome outcome = recovery_in(scratch, {"recovery", "--rounds", "2", "--ranks", "3", "--json"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(parse_json(outcome.out, "out").find("seconds")->items.size(), 2U);
  const Document history = parse_json(recovery_in(scratch, {"history", "--json"}).out, "out");
  ASSERT_EQ(history.find("runs")->items.size(), 1U);
  EXPECT_EQ(history.find("runs")->items[0].find("benchmark")->text, "recovery");
  EXPECT_THAT(history.find("runs")->items[0].find("summary")->text, HasSubstr("3 ranks, 2 killed, median"));
  recovery_in(scratch, {"recovery", "--rounds", "1", "--no-history"});
  EXPECT_EQ(parse_json(recovery_in(scratch, {"history", "--json"}).out, "out").find("runs")->items.size(), 1U);
}

// No rank fails over it, as the job would only start it again.
TEST(BenchRecovery, RefusesBuffersThatTheMemoryDoesNotHold) {
  const ScratchDir scratch;
  const Outcome outcome = recovery_in(scratch, {"recovery", "--size", "900G"});
  EXPECT_EQ(outcome.exit_status, 9) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no memory for buffers of"));
  EXPECT_THAT(outcome.err, HasSubstr("M is the most"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("restarting the lost ranks")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("terminate")));
}

// As one is that dies when the others have all they want of it.
TEST(BenchRecovery, ARankThatHasEndedIsNotWaitedFor) {
  const ScratchDir scratch;
  const Outcome outcome =
      run_yoke({"job", "run", "--ranks", "2", "--policy", "restart", "--", "sh", "-c",
                "[ $YOKE_RANK = 0 ] || exec $PROGRAM rank recovery"},
               {.environment = {{"YOKE_RANK_TASK", R"({"rounds": 0, "size": 65536})"}, {"PROGRAM", YOKE_PROGRAM}},
                .folder = scratch.path(),
                .timeout = 20_s});
  EXPECT_EQ(outcome.exit_status, info(ErrorCode::kUnavailable).exit_status) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("waits for a group, but rank 0 on "));
}

// A rank that dies while the group is being made cannot be missed by its connections, as there are none yet: what the
// job knows must end the waiting. Without that the survivors waited for 5 s. The work takes longer than any delay here.
TEST(LabTimingEarlyDeath, DelaysTheOthersByAMoment) {
  const std::string rank =
      R"(if [ $YOKE_RANK = 2 ] && mkdir once; then rank=$$; (sleep $DELAY; kill -9 $rank) >/dev/null 2>&1 & fi; )"
      R"(exec $PROGRAM rank recovery)";
  for (const char* delay : {"0", "0.01", "0.02", "0.03", "0.04", "0.05", "0.07", "0.1"}) {
    const ScratchDir scratch;
    const Instant begin = real_clock().now();
    const Outcome outcome = run_yoke({"job", "run", "--ranks", "3", "--policy", "restart", "--", "sh", "-c", rank},
                                     {.environment = {{"YOKE_RANK_TASK", R"({"rounds": 0, "size": 4194304})"},
                                                      {"DELAY", delay},
                                                      {"PROGRAM", YOKE_PROGRAM}},
                                      .folder = scratch.path(),
                                      .timeout = 60_s});
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    EXPECT_LT(to_seconds(real_clock().now() - begin).value, 3.5) << "killed after " << delay << " s: " << outcome.err;
  }
}

}  // namespace
}  // namespace yoke::tests
