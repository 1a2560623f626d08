#include "yoke/probe/available_memory.h"

#include <gtest/gtest.h>

namespace yoke::probe {
namespace {

TEST(AvailableMemory, IsWhatTheKernelCallsAvailable) {
  MemoryTree tree;
  EXPECT_EQ(available_memory(tree), std::nullopt);
  tree.add_file("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    600 kB\n");
  EXPECT_EQ(available_memory(tree), Bytes{600 * 1024});
  EXPECT_EQ(total_memory(tree), Bytes{1000 * 1024});
  EXPECT_EQ(total_memory(MemoryTree()), std::nullopt);
}

TEST(AvailableMemory, IsLessInsideALimitAnywhereAbove) {
  MemoryTree tree;
  tree.add_file("/proc/meminfo", "MemAvailable:    600 kB\n");
  tree.add_file("/proc/self/cgroup", "0::/user.slice/job\n");
  tree.add_file("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  tree.add_file("/sys/fs/cgroup/user.slice/job/memory.current", "100\n");
  EXPECT_EQ(available_memory(tree), Bytes{600 * 1024}) << "no limit";
  tree.add_file("/sys/fs/cgroup/user.slice/memory.max", "300000\n");
  tree.add_file("/sys/fs/cgroup/user.slice/memory.current", "200000\n");
  EXPECT_EQ(available_memory(tree), Bytes{100'000});
  tree.add_file("/sys/fs/cgroup/user.slice/memory.stat", "anon 1\ninactive_file 30000\nactive_file 20000\n");
  EXPECT_EQ(available_memory(tree), Bytes{150'000}) << "file pages are given back";
  tree.add_file("/sys/fs/cgroup/user.slice/memory.current", "900000\n");
  EXPECT_EQ(available_memory(tree), Bytes{0});
  EXPECT_EQ(memory_limit(tree), Bytes{300'000});
}

TEST(AvailableMemory, KnowsTheFirstVersionOfControlGroups) {
  MemoryTree tree;
  tree.add_file("/proc/self/cgroup", "9:memory:/docker/x\n8:cpu,cpuacct:/\nbroken\n");
  tree.add_file("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "1000\n");
  tree.add_file("/sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "400\n");
  EXPECT_EQ(available_memory(tree), Bytes{600});
}

TEST(AvailableMemory, HasNoLimitWhereVersionOneShowsItByAHugeNumber) {
  MemoryTree tree;
  EXPECT_EQ(memory_limit(tree), std::nullopt);
  tree.add_file("/proc/self/cgroup", "9:memory:/docker\n");
  tree.add_file("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_limit(tree), std::nullopt);
  tree.add_file("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "268435456\n");
  EXPECT_EQ(memory_limit(tree), Bytes{268'435'456});
}

}  // namespace
}  // namespace yoke::probe
