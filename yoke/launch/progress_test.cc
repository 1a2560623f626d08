#include "yoke/launch/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/launch/guard.h"
#include "yoke/launch/launch_cases_testing.h"
#include "yoke/launch/run.h"

namespace yoke::launch {
namespace {

using testing::Contains;

TEST(Progress, TheRunnerStandsBeforeTheScriptOfTraining) {
  const LaunchCase sparks = two_sparks();
  const LaunchOptions options{
      .rest = {"--max_restarts", "1", "train.py", "a.py"}, .progress = Seconds{90}, .scratch = "/tmp/s"};
  const LaunchPlan plan = plan_launch(load_engine("torchrun"), options, sparks.nodes, {});
  const auto& argv = plan.processes[1].argv;
  const auto runner = std::find(argv.begin(), argv.end(), "/tmp/s/yoke_steps.py");
  ASSERT_NE(runner, argv.end());
  EXPECT_EQ(std::vector<std::string>(runner - 1, argv.end()),
            (std::vector<std::string>{"1", "/tmp/s/yoke_steps.py", "train.py", "a.py"}));
  const auto guard = guard_argv(plan, 1, {});
  EXPECT_THAT(guard, Contains("--progress"));
  EXPECT_THAT(guard, Contains("90s"));
  EXPECT_THAT(guard, Contains("--remove"));
  EXPECT_ERROR(plan_launch(load_engine("torchrun"), {.rest = {"-m", "pkg"}, .progress = Seconds{9}}, sparks.nodes, {}),
               ErrorCode::kUsage, "ends in .py");
  EXPECT_ERROR(plan_launch(load_engine("vllm"), {.model = "m", .progress = Seconds{9}}, sparks.nodes, {}),
               ErrorCode::kUnsupported, "vllm makes none");
}

TEST(Progress, ReadsWhereARankIs) {
  const RankPlace loads = read_stack(
      "Current thread 0x7f (most recent call first):\n  File \"/x/train.py\", line 12 in load\n"
      "  File \"/x/train.py\", line 40 in <module>\n  File \"<frozen runpy>\", line 88 in _run_code\n");
  EXPECT_EQ(loads.place, "train.py:12 in load");
  EXPECT_FALSE(loads.waits);
  const RankPlace waits = read_stack(
      "Current thread 0x7f (most recent call first):\n"
      "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 1322 in all_reduce\n"
      "  File \"/x/train.py\", line 41 in <module>\n");
  EXPECT_EQ(waits.place, "train.py:41 in <module>");
  EXPECT_TRUE(waits.waits);
  EXPECT_EQ(read_stack("").place, "");
}

// A program in the place of a rank: it counts five steps, says where it is when it is asked, and makes no more.
std::string rank_script(const std::string& folder, const std::string& stack) {
  return fmt::format(
      "trap 'printf \"{1}\" > {0}/rank-3.stack' USR2\n"
      "for i in 1 2 3 4 5; do echo \"$i $$ \" > {0}/rank-3; sleep 0.1; done\n"
      "while :; do sleep 0.05; done\n",
      folder, stack);
}

TEST(Progress, TheGuardEndsATrainingThatStandsStill) {
  const ScratchDir scratch;
  const std::string stack = "  File \\\"/x/train.py\\\", line 7 in load\\n";
  EXPECT_ERROR(run_guard({.argv = {"sh", "-c", rank_script(scratch.path(), stack)},
                          .progress = scratch.path(),
                          .progress_limit = Seconds{1}}),
               ErrorCode::kTimeout, "after 5; it is at train.py:7 in load");
  // Steps keep it alive; it ends by itself.
  const std::string walks = fmt::format("for i in $(seq 20); do echo \"$i 1 \" > {}/rank-3; sleep 0.1; done; exit 4",
                                        scratch.path().native());
  EXPECT_EQ(run_guard({.argv = {"sh", "-c", walks}, .progress = scratch.path(), .progress_limit = Seconds{1.5}}), 4);
}

// Ranks in a container have numbers of their own there: the signal goes by 'docker exec', here a program in its place.
TEST(Progress, RanksInAContainerAreAskedByDocker) {
  const ScratchDir scratch;
  const std::filesystem::path docker = scratch.path() / "docker", steps = scratch.path() / "steps";
  write_file_atomically(docker,
                        fmt::format("#!/bin/sh\necho \"$*\" > {0}/asked\n"
                                    "printf 'File \"/x/train.py\", line 7 in load' > {0}/steps/rank-3.stack\n",
                                    scratch.path().native()),
                        {.mode = 0755});
  make_folder(steps);
  write_file_atomically(steps / "rank-3", "5 4242 \n");
  const std::string path = std::getenv("PATH");
  setenv("PATH", fmt::format("{}:{}", scratch.path().native(), path).c_str(), 1);
  StepWatch watch(steps, "yoke-torchrun");
  watch.look();
  const std::string report = watch.report().text;
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(report, testing::HasSubstr("rank 3 has made no step for 0 s, after 5; it is at train.py:7 in load"));
  EXPECT_EQ(read_file(scratch.path() / "asked"), "exec yoke-torchrun sh -c kill -USR2 \"$@\" sh 4242\n");
}

TEST(Progress, ANodeWhoseRanksAllWaitGivesTheOtherNodeTimeToSpeak) {
  const ScratchDir scratch;
  const std::string stack =
      "  File \\\"/l/torch/distributed/c10d.py\\\", line 9 in all_reduce\\n  File \\\"/x/train.py\\\", line 8 in "
      "step\\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_ERROR(run_guard({.argv = {"sh", "-c", rank_script(scratch.path(), stack)},
                          .progress = scratch.path(),
                          .progress_limit = Seconds{0.5}}),
               ErrorCode::kTimeout, "train.py:8 in step and waits for other ranks");
  EXPECT_GT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 3.5);
}

}  // namespace
}  // namespace yoke::launch
