#include "yoke/launch/guard.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <csignal>
#include <fstream>
#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/socket.h"
#include "yoke/launch/canary.h"
#include "yoke/launch/memory_gauge.h"
#include "yoke/launch/memory_watch.h"

namespace yoke::launch {
namespace {

using Steady = std::chrono::steady_clock;
double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

TEST(MemoryGauge, ReadsWhatIsLeftAndNumbersBehindNames) {
  const MemoryGauge gauge;
  EXPECT_GT(gauge.available(), 0);
  EXPECT_GE(gauge.total(), gauge.available());
  EXPECT_EQ(number_after("MemTotal:   12 kB\nMemAvailable:\t 7 kB\n", "MemAvailable:"), 7);
  EXPECT_EQ(number_after("active_file 3\ntotal_active_file 4\n", "active_file "), 3);
  EXPECT_EQ(number_after("xactive_file 3\n", "active_file "), -1);
  EXPECT_EQ(number_after("", "x"), -1);
}

TEST(Guard, ReturnsTheExitStatusOfItsProgram) {
  EXPECT_EQ(run_guard({.argv = {"sh", "-c", "exit 7"}}), 7);
  EXPECT_EQ(run_guard({.argv = {"sh", "-c", "kill -9 $$"}}), 137);
  EXPECT_ERROR(run_guard({.argv = {"no-such-engine"}}), ErrorCode::kNotFound, "cannot start 'no-such-engine'");
}

// A floor above what the machine has: the guard acts at its first look, which is within 0.3 s.
TEST(Guard, RemovesTheProgramsFolderWhenTheProgramHasEnded) {
  const ScratchDir scratch;
  const std::filesystem::path folder = scratch.path() / "files";
  const std::string script = "mkdir " + folder.native() + " && echo x > " + folder.native() + "/hostfile && exit 3";
  EXPECT_EQ(run_guard({.argv = {"sh", "-c", script}, .remove = folder}), 3);
  EXPECT_FALSE(std::filesystem::exists(folder));
  std::filesystem::create_directory_symlink(scratch.path(), folder);
  EXPECT_EQ(run_guard({.argv = {"true"}, .remove = folder}), 0);
  EXPECT_TRUE(std::filesystem::exists(folder)) << "a link leads to what is not the program's";
}

TEST(Guard, KillsAllDescendantsBelowTheFloorWithin300Milliseconds) {
  const ScratchDir scratch;
  const std::string file = scratch.path() / "pid";
  const auto start = Steady::now();
  const MemoryGauge gauge;
  EXPECT_ERROR(run_guard({.argv = {"sh", "-c", "setsid sleep 100 & echo $! > " + file + "; exec sleep 100"},
                          .floor = Bytes{gauge.available() + (1LL << 40)},
                          .lower = {"--gpu-memory-utilization", "--max-num-seqs"}}),
               ErrorCode::kExhausted, "the engine was stopped: ");
  EXPECT_LT(seconds_since(start), 3) << "with its report";
}

// A child in its own group, killed by the watch: the time until its death is the guard's reaction.
double reaction() {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    for (;;) pause();
  }
  setpgid(child, child);
  const auto start = Steady::now();
  const MemoryGauge gauge;
  MemoryWatch watch(Bytes{gauge.available() + (1LL << 40)}, child);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return seconds_since(start);
}

TEST(MemoryWatch, ActsWithin300Milliseconds) {
  // The median: other tests may hold a processor for longer once.
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(reaction());
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[2], 0.3);
}

TEST(Guard, EndsAProgramThatASignalStopped) {
  const auto start = Steady::now();
  EXPECT_ERROR(run_guard({.argv = {"sh", "-c", "(sleep 0.2; kill -STOP $$) & sleep 100"}, .stopped_limit = Seconds{1}}),
               ErrorCode::kUnavailable, "has been stopped for 1 s");
  EXPECT_LT(seconds_since(start), 6);
}

TEST(Guard, WaitsForAPortBeforeItStarts) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const std::string endpoint = to_string(listener.local());
  EXPECT_EQ(run_guard({.argv = {"true"}, .wait_for = {endpoint}}), 0);
  listener.close();
  EXPECT_ERROR(run_guard({.argv = {"true"}, .wait_for = {endpoint}, .start_limit = Seconds{0.3}}), ErrorCode::kTimeout,
               "nothing answers at");
}

TEST(Guard, EndsWithTheHeadThatItFollows) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const std::string head = to_string(listener.local());
  const GuardOptions options{.argv = {"sleep", "100"}, .follow = head, .follow_limit = Seconds{1}};
  std::thread dies([&] {
    listener.accept(Deadline::after(Seconds{30}));  // the guard has seen it
    listener.close();
  });
  const auto start = Steady::now();
  EXPECT_ERROR(run_guard(options), ErrorCode::kUnavailable, "the head has not answered at " + head);
  EXPECT_LT(seconds_since(start), 20);
  dies.join();
  // A head that never answered may still be loading.
  EXPECT_EQ(run_guard({.argv = {"sleep", "2"}, .follow = head, .follow_limit = Seconds{0.1}}), 0);
}

TEST(Canary, KnowsATokenAndTheCountersOfEngines) {
  EXPECT_TRUE(is_token(200, R"({"choices": [{"text": "a"}]})"));
  EXPECT_FALSE(is_token(200, R"({"choices": []})"));
  EXPECT_FALSE(is_token(503, R"({"choices": [{"text": "a"}]})"));
  EXPECT_FALSE(is_token(200, "<html>"));
  EXPECT_EQ(count_tokens("# HELP x\nvllm:generation_tokens_total{model=\"m\"} 5\nvllm:generation_tokens_total{e=\"1\"} "
                         "2.0\n"),
            7);
  EXPECT_EQ(count_tokens("nothing 1\n"), -1);
}

TEST(Guard, FloorsAreLargerWhereTheGpuTakesTheSystemsMemory) {
  EXPECT_EQ(usual_floor(Bytes{128LL << 30}, true), Bytes{8LL << 30});
  EXPECT_EQ(usual_floor(Bytes{128LL << 30}, false), Bytes{4LL << 30});
  EXPECT_EQ(usual_floor(Bytes{512LL << 20}, true), Bytes{64LL << 20});
}

}  // namespace
}  // namespace yoke::launch
