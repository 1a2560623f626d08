// A command that is killed leaves what it had in files; the next one leaves none of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/engine_fixture.h"
#include "tests/lab_fixture.h"
#include "yoke/base/clock.h"
#include "yoke/base/process.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

// Logs of ssh, the lab's copy of the cluster file, scratch folders, records of jobs.
constexpr const char* kLook =
    "ls /run/yoke/ssh 2>/dev/null | grep ^log-; ls /run/yoke-lab | grep ^cluster-; "
    "ls -d /tmp/yoke-* /run/yoke/jobs/*.json 2>/dev/null; true";

TEST(KilledHead, OfAJobLeavesNothingAfterTheNextCommand) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  Process job({.argv = {YOKE_PROGRAM, "job", "run", "--", "sh", "-c", "echo begun; sleep 44"}, .folder = lab.folder});
  const Deadline deadline = Deadline::after(30_s);
  while (!deadline.expired()) {
    const auto line = job.read_line(deadline);
    if (line && line->text.find("begun") != std::string::npos) break;
  }
  kill(job.pid(), SIGKILL);
  job.wait(Deadline::after(10_s));
  lab.yoke({"job", "list"});
  EXPECT_EQ(lab.exec("1", {"sh", "-c", kLook}).out, "");
}

struct KilledRun : EngineTest {};

TEST_F(KilledRun, LeavesNoScratchFolderAfterTheNext) {
  const ScratchDir temporary("yoke-killed-run");
  const auto scratch_folders = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(temporary.path())) names.push_back(entry.path().filename());
    return names;
  };
  const std::vector<std::string> words = {"run", kNano, "-p", "x", "--raw", "--ranks", "2", "-n"};
  Process first({.argv = joined({YOKE_PROGRAM}, joined(words, {"900"})),
                 .environment = {{"TMPDIR", temporary.path()}},
                 .folder = scratch.path()});
  for (const Deadline deadline = Deadline::after(30_s); !deadline.expired() && scratch_folders().empty();)
    real_clock().sleep(2_ms);
  kill(first.pid(), SIGKILL);
  first.wait(Deadline::after(10_s));
  ASSERT_THAT(scratch_folders(), testing::SizeIs(1));
  const Outcome second = run_yoke(
      joined(words, {"1"}), {.environment = {{"TMPDIR", temporary.path()}}, .folder = scratch.path(), .timeout = 60_s});
  EXPECT_TRUE(second.ok()) << second.err;
  EXPECT_THAT(scratch_folders(), testing::IsEmpty());
}

}  // namespace
}  // namespace yoke::tests
