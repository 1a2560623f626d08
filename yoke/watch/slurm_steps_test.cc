#include "yoke/watch/slurm_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

void add_process(MemoryTree& tree, int pid, const std::string& comm, const std::string& title) {
  tree.add_file("/proc/" + std::to_string(pid) + "/comm", comm + "\n");
  tree.add_file("/proc/" + std::to_string(pid) + "/cmdline", title + std::string(1, '\0'));
}

TEST(SlurmSteps, AreJobsWithTheirSteps) {
  MemoryTree tree;
  tree.add_file("/proc/meminfo", "MemTotal: 1 kB\n");
  add_process(tree, 7, "bash", "bash");
  add_process(tree, 40, "slurmd", "/usr/sbin/slurmd");
  add_process(tree, 41, "slurmstepd", "slurmstepd: [12.extern]");
  add_process(tree, 42, "slurmstepd", "slurmstepd: [12.0]");
  add_process(tree, 43, "slurmstepd", "slurmstepd: [9_3.batch]");
  add_process(tree, 44, "slurmstepd", "slurmstepd infinity");  // Slurm's own, of no job
  SlurmSteps steps;
  const std::vector<JobSample> jobs = steps.read(tree, "09:00");
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[0].name, "slurm 12");
  EXPECT_EQ(jobs[0].command, "steps: 0, extern");
  EXPECT_EQ(jobs[1].name, "slurm 9_3");
  EXPECT_EQ(steps.read(tree, "09:05"), jobs) << "a job keeps the time at which it was first seen";
}

TEST(SlurmSteps, OfAJobThatEndedAreGone) {
  MemoryTree before, after;
  add_process(before, 41, "slurmstepd", "slurmstepd: [12.0]");
  add_process(after, 50, "sh", "sh");
  SlurmSteps steps;
  EXPECT_THAT(steps.read(before, "09:00"), SizeIs(1));
  EXPECT_THAT(steps.read(after, "09:05"), IsEmpty());
  EXPECT_THAT(steps.read(before, "09:10").at(0).since, "09:10") << "the same number is another job";
  EXPECT_THAT(SlurmSteps().read(MemoryTree(), "09:00"), IsEmpty());
}

// Any user may call a process as he likes.
TEST(SlurmSteps, OfOtherProgramsAreNotBelieved) {
  MemoryTree tree;
  add_process(tree, 41, "slurmstepd", "slurmstepd: [abc.0]");
  add_process(tree, 42, "slurmstepd", "slurmstepd: [12");
  add_process(tree, 43, "other", "slurmstepd: [12.0]");
  EXPECT_THAT(SlurmSteps().read(tree, "09:00"), IsEmpty());
}

}  // namespace
}  // namespace yoke::watch
