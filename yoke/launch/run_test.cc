#include "yoke/launch/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/launch/launch_cases_testing.h"

namespace yoke::launch {
namespace {

using testing::Contains;

TEST(LaunchRun, EveryNodeGetsItsOwnCommandUnderAGuard) {
  const LaunchCase sparks = two_sparks();
  const LaunchPlan plan = plan_launch(load_engine("vllm"), {.model = "/models/m"}, sparks.nodes, {});
  const job::JobSpec spec = job_of(plan, sparks.cluster.nodes, {.floor = Bytes{8LL << 30}});
  ASSERT_EQ(spec.nodes.size(), 2U);
  EXPECT_TRUE(spec.own_program);
  const auto& head = spec.nodes[0].argv;
  const auto& worker = spec.nodes[1].argv;
  EXPECT_EQ(std::vector<std::string>(head.begin(), head.begin() + 5),
            (std::vector<std::string>{"yoke", "launch", "guard", "--floor", "8GiB"}));
  EXPECT_THAT(head, Contains("--canary"));
  EXPECT_THAT(worker, Contains("--headless"));
  EXPECT_THAT(worker, testing::Not(Contains("--canary"))) << "only the head makes tokens";
  EXPECT_THAT(spec.nodes[1].environment, Contains(job::Variable{"VLLM_HOST_IP", "192.168.100.2"}));
}

TEST(LaunchRun, StepsAndFilesComeBeforeTheEngineInOneShell) {
  const LaunchCase sparks = two_sparks();
  const auto ray = guard_argv(plan_launch(load_engine("vllm-ray"), {.model = "m"}, sparks.nodes, {}), 0, {});
  EXPECT_EQ(ray[ray.size() - 3], "bash");
  EXPECT_NE(ray.back().find("ray start --head"), std::string::npos);
  EXPECT_NE(ray.back().find(" || exit\nexec vllm serve"), std::string::npos) << ray.back();
  const auto deepspeed = guard_argv(plan_launch(load_engine("deepspeed"), {.rest = {"t.py"}}, sparks.nodes, {}), 1, {});
  EXPECT_NE(deepspeed.back().find("192.168.100.2 slots=1\nEND\nexec deepspeed"), std::string::npos) << deepspeed.back();
}

Outcome run_bash(const std::string& script) { return run({.argv = {"bash", "-c", script}}); }

TEST(LaunchRun, FilesOfTheEngineLieInAFolderThatOnlyItsUserCanWriteTo) {
  const ScratchDir folder;
  const std::filesystem::path scratch = folder.path() / "taken";
  const LaunchPlan plan =
      plan_launch(load_engine("deepspeed"), {.rest = {"t.py"}, .scratch = scratch}, two_sparks().nodes, {});
  ASSERT_EQ(plan.files.size(), 1U);
  EXPECT_EQ(plan.files[0].path, scratch / "hostfile");
  const std::string script = "umask 000\n" + files_text(plan) + "echo written\n";

  std::filesystem::create_directory_symlink(folder.path(), scratch);  // a link that somebody else put there
  const Outcome linked = run_bash(script);
  EXPECT_EQ(linked.exit_status, 2) << linked.err;
  EXPECT_EQ(linked.err, scratch.native() + " belongs to another user\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "hostfile"));
  std::filesystem::remove(scratch);

  if (geteuid() == 0) {  // only root can make a folder of another user's
    std::filesystem::create_directory(scratch);
    ASSERT_EQ(chown(scratch.c_str(), 65534, 65534), 0);
    EXPECT_EQ(run_bash(script).exit_status, 2);
    EXPECT_TRUE(std::filesystem::is_empty(scratch));
    std::filesystem::remove(scratch);
  }

  for (int run = 0; run < 2; ++run) {  // a script may run again
    const Outcome own = run_bash(script);
    EXPECT_EQ(own.out, "written\n") << own.err;
    EXPECT_EQ(read_file(scratch / "hostfile"), plan.files[0].text);
    struct stat status {};
    ASSERT_EQ(stat(scratch.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U) << "whatever the umask";
  }
}

TEST(LaunchRun, TheGuardRemovesTheFilesOfTheEngine) {
  const LaunchCase sparks = two_sparks();
  const LaunchPlan plan =
      plan_launch(load_engine("deepspeed"), {.rest = {"t.py"}, .scratch = "/tmp/s"}, sparks.nodes, {});
  const auto argv = guard_argv(plan, 1, {});
  const auto option = std::find(argv.begin(), argv.end(), "--remove");
  ASSERT_NE(option, argv.end());
  EXPECT_EQ(*(option + 1), "/tmp/s");
  EXPECT_THAT(guard_argv(plan_launch(load_engine("vllm"), {.model = "m"}, sparks.nodes, {}), 1, {}),
              testing::Not(Contains("--remove")));
}

TEST(LaunchRestarts, PausesGrowAndHealthForgetsFailures) {
  Restarts restarts({.restarts_max = 3, .first_pause = Seconds{30}});
  const AttemptEnd killed{.kind = job::CauseKind::kRankKilled, .lasted = Seconds{60}, .was_ready = true};
  EXPECT_EQ(restarts.after(killed), Seconds{30});
  EXPECT_EQ(restarts.after(killed), Seconds{60});
  EXPECT_EQ(restarts.after(killed), Seconds{120});
  EXPECT_EQ(restarts.after(killed), std::nullopt) << "enough";
  Restarts patient({.restarts_max = 1, .first_pause = Seconds{30}});
  EXPECT_TRUE(patient.after(killed));
  EXPECT_TRUE(patient.after({.kind = job::CauseKind::kRankKilled, .lasted = Seconds{700}, .was_ready = true}));
  EXPECT_FALSE(patient.after(killed));
}

TEST(LaunchRestarts, WhatNeverWorkedOrWasStoppedIsNotStartedAgain) {
  Restarts restarts({});
  EXPECT_FALSE(restarts.after({.kind = job::CauseKind::kRankExited, .lasted = Seconds{2}})) << "a wrong option";
  EXPECT_FALSE(restarts.after({.kind = job::CauseKind::kStopped, .lasted = Seconds{100}, .was_ready = true}));
  EXPECT_FALSE(restarts.after({.kind = job::CauseKind::kNotStarted}));
  EXPECT_TRUE(restarts.after({.kind = job::CauseKind::kNodeDead, .lasted = Seconds{5}}));
}

}  // namespace
}  // namespace yoke::launch
