#include "yoke/base/processor_share.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

TEST(ProcessorShare, IsTheLeastQuotaUpToTheRoot) {
  MemoryTree tree;
  tree.add_file("/proc/self/cgroup", "0::/machine/node1/rank\n");
  EXPECT_EQ(quota_share(tree, 8), 8) << "no files, no limit";
  tree.add_file("/sys/fs/cgroup/machine/node1/rank/cpu.max", "max 100000\n");
  tree.add_file("/sys/fs/cgroup/machine/node1/cpu.max", "150000 100000\n");
  tree.add_file("/sys/fs/cgroup/machine/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(quota_share(tree, 8), 1.5);
  EXPECT_DOUBLE_EQ(quota_share(tree, 1), 1);
  EXPECT_EQ(threads_for(1.5), 1);
}

TEST(ProcessorShare, ReadsTheFirstVersionOfControlGroups) {
  MemoryTree tree;
  tree.add_file("/proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n");
  tree.add_file("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
  tree.add_file("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  tree.add_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.add_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota_share(tree, 2), 0.5);
}

TEST(ProcessorShare, RailAProcessorIsOneThread) {
  EXPECT_EQ(threads_for(0.5), 1);
  EXPECT_EQ(threads_for(1), 1);
  EXPECT_EQ(threads_for(2.9), 2);
}

TEST(ProcessorShare, WhatMakesNoSenseIsNoLimit) {
  for (const char* const text : {"", "nonsense", "-5 100000", "0 100000", "5", "5 0", "5 6 7"}) {
    MemoryTree tree;
    tree.add_file("/proc/self/cgroup", "0::/\nbroken\n");
    tree.add_file("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota_share(tree, 4), 4) << text;
  }
}

}  // namespace
}  // namespace yoke
