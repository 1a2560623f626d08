#include "yoke/probe/memory_kind.h"

#include <gtest/gtest.h>

#include "yoke/probe/sources.h"

namespace yoke::probe {
namespace {

const std::filesystem::path kCaptures = std::filesystem::path(YOKE_SOURCE_DIR) / "tests" / "fixtures";

TEST(MemoryKind, AGpuOnTheProcessorsChipSharesItsMemory) {
  EXPECT_EQ(memory_kind(*load_capture(kCaptures / "spark-pair").files), spec::MemoryKind::kUnified);
  EXPECT_EQ(memory_kind(*load_capture(kCaptures / "asus-gx10").files), spec::MemoryKind::kUnified);
  EXPECT_EQ(memory_kind(*load_capture(kCaptures / "b300").files), spec::MemoryKind::kHost);
  EXPECT_EQ(memory_kind(*load_capture(kCaptures / "laptop").files), spec::MemoryKind::kHost);
}

TEST(MemoryKind, ALimitAroundUsKeepsTheMachineAlive) {
  MemoryTree tree;
  tree.add_file("/proc/meminfo", "MemTotal: 127535084 kB\nMemAvailable: 110000000 kB\n");
  tree.add_file("/sys/bus/pci/devices/000f:01:00.0/vendor", "0x10de\n");
  tree.add_file("/sys/bus/pci/devices/000f:01:00.0/device", "0x2e12\n");
  tree.add_file("/sys/bus/pci/devices/000f:01:00.0/class", "0x030000\n");
  EXPECT_EQ(memory_kind(tree), spec::MemoryKind::kUnified);
  tree.add_file("/proc/self/cgroup", "0::/job\n");
  tree.add_file("/sys/fs/cgroup/job/memory.max", "146800640\n");
  tree.add_file("/sys/fs/cgroup/job/memory.current", "1000000\n");
  EXPECT_EQ(memory_kind(tree), spec::MemoryKind::kHost);
}

}  // namespace
}  // namespace yoke::probe
