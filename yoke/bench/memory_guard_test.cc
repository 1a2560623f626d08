#include "yoke/bench/memory_guard.h"

#include <gtest/gtest.h>

namespace yoke::bench {
namespace {

RankFacts on_gpu(const std::string& host, const std::string& bus, std::int64_t host_memory, std::int64_t gpu_memory) {
  return {.host = host,
          .bus = bus,
          .memory = RankMemory::kGpu,
          .memory_available = host_memory,
          .gpu_memory_available = gpu_memory};
}

TEST(MemoryGuard, NothingIsSaidWhereNoMemoryIsKnown) {
  EXPECT_EQ(largest_size({}), std::nullopt);
  EXPECT_EQ(largest_size({{.host = "a"}, {.host = "b"}}), std::nullopt);
}

// A quarter of 4000 stays free; 3 buffers of each rank share the rest.
TEST(MemoryGuard, RanksOfOneHostShareItsMemory) {
  const RankFacts rank{.host = "a", .memory_available = 4000};
  EXPECT_EQ(largest_size({rank}), 1000);
  EXPECT_EQ(largest_size({rank, rank}), 500);
  EXPECT_EQ(largest_size({rank, {.host = "b", .memory_available = 2000}}), 500) << "the least counts";
}

TEST(MemoryGuard, AtMostAGibibyteStaysFree) {
  EXPECT_EQ(largest_size({{.host = "a", .memory_available = 13LL << 30}}), 4LL << 30);
}

TEST(MemoryGuard, AGpuHasMemoryOfItsOwn) {
  EXPECT_EQ(largest_size({on_gpu("a", "0000:01:00", 80'000, 4000)}), 1500) << "two buffers of 3000 on the GPU";
  EXPECT_EQ(largest_size({on_gpu("a", "0000:01:00", 4000, 80'000)}), 1500) << "two more on the host";
  const auto first = on_gpu("a", "0000:01:00", 80'000, 4000), second = on_gpu("a", "0000:02:00", 80'000, 4000);
  EXPECT_EQ(largest_size({first, second}), 1500) << "each has its own";
  EXPECT_EQ(largest_size({first, first}), 750) << "both on one";
}

TEST(MemoryGuard, UnifiedMemoryHoldsAllFour) {
  const RankFacts rank{.host = "spark-1", .memory = RankMemory::kUnified, .memory_available = 4000};
  EXPECT_EQ(largest_size({rank}), 750);
}

}  // namespace
}  // namespace yoke::bench
