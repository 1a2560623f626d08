#include "yoke/bench/memory_guard.h"

#include <algorithm>
#include <map>
#include <string>

namespace yoke::bench {
namespace {

struct BufferCounts {
  std::int64_t host = 0;
  std::int64_t gpu = 0;
};

// What one rank holds, in buffers of the size. On a processor two, and one more for what the transport holds on the
// way; NCCL's own memory does not grow with the size. For a GPU two on the device, and two on the host to fill and to
// check them: where both are one memory all four lie in it, and a machine that runs out of it freezes.
BufferCounts buffers_of(const RankFacts& rank) {
  switch (rank.memory) {
    case RankMemory::kGpu:
      return {.host = 2, .gpu = 2};
    case RankMemory::kUnified:
      return {.host = 4};
    case RankMemory::kHost:
      break;
  }
  return {.host = 3};
}

std::string gpu_of(const RankFacts& rank) { return rank.host + " " + rank.bus; }

}  // namespace

std::optional<std::int64_t> largest_size(const std::vector<RankFacts>& ranks) {
  std::map<std::string, std::int64_t> on_host, on_gpu;  // buffers
  for (const RankFacts& rank : ranks) {
    on_host[rank.host] += buffers_of(rank).host;
    on_gpu[gpu_of(rank)] += buffers_of(rank).gpu;
  }
  std::optional<std::int64_t> min;
  const auto limit = [&](std::int64_t available, std::int64_t buffers) {
    if (available <= 0 || buffers == 0) return;
    const std::int64_t spare = std::min<std::int64_t>(1LL << 30, available / 4);
    const std::int64_t size = (available - spare) / buffers;
    min = std::min(min.value_or(size), size);
  };
  for (const RankFacts& rank : ranks) {
    limit(rank.memory_available, on_host[rank.host]);
    limit(rank.gpu_memory_available, on_gpu[gpu_of(rank)]);
  }
  return min;
}

}  // namespace yoke::bench
