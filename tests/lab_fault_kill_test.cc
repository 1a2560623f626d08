// Faults of a lab whose command is killed half-way, at each of the programs that it starts: `lab fault clear` ends them
// all, and everything is as before.
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "yoke/base/clock.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

struct LabFaultKill : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs({"nft"})) GTEST_SKIP() << *why;
    fs::create_directories(tools);
    for (const char* name : {"ip", "tc", "nft"}) {
      write_file_atomically(tools / name,
                            fmt::format("#!/bin/sh\n"
                                        "n=$(($(cat {0}/count) + 1)); echo $n > {0}/count\n"
                                        "[ $n != $(cat {0}/kill-at) ] || {{ kill -KILL $PPID; exit 1; }}\n"
                                        "exec {1} \"$@\"\n",
                                        scratch.path().native(), find_program(name)->native()),
                            {.mode = 0755});
    }
  }

  // Runs it with SIGKILL at the start of its nth program. True where it came to its end before.
  bool run_until(const TestLab& lab, int nth, const std::vector<std::string>& words) const {
    write_file_atomically(scratch.path() / "count", "0\n");
    write_file_atomically(scratch.path() / "kill-at", fmt::format("{}\n", nth));
    const Outcome outcome = run_yoke(
        joined({"lab", "fault", "--name", lab.name}, words),
        {.environment = {{"PATH", tools.native() + ":" + std::getenv("PATH")}}, .folder = lab.folder, .timeout = 60_s});
    EXPECT_TRUE(outcome.ok() || outcome.signal == SIGKILL) << outcome.describe() << "\n" << outcome.err;
    return outcome.ok();
  }

  // Addresses, routes, links, shaping and packet filters of both nodes. Queues get a new number when they are replaced.
  static std::string state(const TestLab& lab) {
    const std::string look = "ip addr; ip -4 route | sort; tc qdisc | sed 's/tbf [0-9a-f]*:/tbf/'; nft list ruleset";
    return lab.exec("1", {"sh", "-c", look}).out + lab.exec("2", {"sh", "-c", look}).out;
  }

  static void expect_cleared(const TestLab& lab, const std::string& before, const std::string& what) {
    const Outcome clear = lab.yoke({"lab", "fault", "--name", lab.name, "clear"});
    EXPECT_TRUE(clear.ok()) << what << ": " << clear.err;
    const Deadline deadline = Deadline::after(5_s);
    while (state(lab) != before && !deadline.expired()) real_clock().sleep(50_ms);
    EXPECT_EQ(state(lab), before) << what;
    const Outcome status = lab.yoke({"lab", "status", "--name", lab.name});
    EXPECT_EQ(status.out.find("Fault:"), std::string::npos) << what << "\n" << status.out;
  }

  const ScratchDir scratch{"yoke-test-kill"};
  const fs::path tools = scratch.path() / "tools";
};

TEST_F(LabFaultKill, ClearWorksAfterAKillAtAnyStep) {
  constexpr int kMaxSteps = 30;
  const TestLab lab;
  const std::string before = state(lab);
  for (const std::string fault : {"same-subnet", "management-only", "firewall", "rail-down"}) {
    const std::vector<std::string> make = {fault, "--node", "1"};
    int step = 1;
    for (; !run_until(lab, step, make) && step < kMaxSteps; ++step)
      expect_cleared(lab, before, fmt::format("{} killed at step {}", fault, step));
    EXPECT_GT(step, 1) << "no program was started: the test kills nothing";
    for (step = 1; !run_until(lab, step, {"clear"}) && step < kMaxSteps; ++step) {
      expect_cleared(lab, before, fmt::format("clear of {} killed at step {}", fault, step));
      EXPECT_TRUE(run_until(lab, 0, make));
    }
    EXPECT_GT(step, 1) << "no program was started: the test kills nothing";
    EXPECT_EQ(state(lab), before) << fault;
    if (HasFailure()) return;
  }
}

// A fault that cannot be cleared keeps no other from being cleared, and stays listed.
TEST_F(LabFaultKill, ClearGoesOnAfterAFaultThatCannotBeCleared) {
  const TestLab lab;
  const std::string before = state(lab);
  EXPECT_TRUE(run_until(lab, 0, {"rail-down", "--node", "1"}));
  EXPECT_TRUE(run_until(lab, 0, {"firewall", "--node", "2"}));
  write_file_atomically(tools / "nft", "#!/bin/sh\necho no such luck >&2; exit 1\n", {.mode = 0755});
  const Outcome clear = run_yoke(
      {"lab", "fault", "--name", lab.name, "clear"},
      {.environment = {{"PATH", tools.native() + ":" + std::getenv("PATH")}}, .folder = lab.folder, .timeout = 60_s});
  EXPECT_EQ(clear.exit_status, Error(ErrorCode::kUnavailable, "").exit_status()) << clear.err;
  EXPECT_NE(clear.err.find("not cleared: firewall on spark-2"), std::string::npos) << clear.err;
  const std::string status = lab.yoke({"lab", "status", "--name", lab.name}).out;
  EXPECT_NE(status.find("Fault: firewall on spark-2"), std::string::npos) << status;
  EXPECT_EQ(status.find("rail-down"), std::string::npos) << status;
  expect_cleared(lab, before, "after nft works again");
}

}  // namespace
}  // namespace yoke::tests
