#include "yoke/survey/canary.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/link/processor_load.h"
#include "yoke/probe/available_memory.h"

namespace yoke::survey {
namespace {

// Larger than the caches of most machines. Of one whose caches hold part of it, all measurements have the same part.
constexpr Bytes kCanaryBlock{256 << 20};
// What must be available: a machine that is nearly full is left alone.
constexpr Bytes kCanaryRoom{kCanaryBlock.value * 8};
constexpr int kCanaryRounds = 7;
constexpr int kMaxCanaryThreads = 64;

using Chunk = std::uint64_t __attribute__((vector_size(16)));  // a register of every 64-bit machine

// Eight independent sums: the loads are what limits it.
std::uint64_t sum_chunks(const Chunk* chunks, std::size_t count) {
  Chunk sums[8] = {};
  for (std::size_t i = 0; i < count; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] += chunks[i + j];
  }
  Chunk all{};
  for (const Chunk& sum : sums) all += sum;
  return all[0] + all[1];
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp(count, 1, kMaxCanaryThreads);
}

Seconds own_processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

// The time of each round, from when all begin to when the last ends. A round before them brings the pages in.
std::vector<double> time_rounds(int threads) {
  const std::size_t count =
      static_cast<std::size_t>(kCanaryBlock.value) / sizeof(Chunk) / static_cast<std::size_t>(threads) / 8 * 8;
  std::vector<double> times;
  Instant begun;
  bool timed = false;
  std::atomic<bool> wrong = false;
  std::barrier start(threads, [&]() noexcept { begun = real_clock().now(); });
  std::barrier end(threads, [&]() noexcept {
    if (std::exchange(timed, true)) times.push_back(to_seconds(real_clock().now() - begun).value);
  });
  times.reserve(kCanaryRounds);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&] {
      const auto chunks = std::make_unique_for_overwrite<Chunk[]>(count);
      for (std::size_t i = 0; i < count; ++i) chunks[i] = Chunk{i, 1};
      for (int round = 0; round <= kCanaryRounds; ++round) {
        start.arrive_and_wait();
        const std::uint64_t sum = sum_chunks(chunks.get(), count);
        end.arrive_and_wait();
        if (sum != count * (count - 1) / 2 + count) wrong = true;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (wrong) throw Error(ErrorCode::kInternal, "memory gave wrong data on reading", "is the memory broken?");
  return times;
}

}  // namespace

spec::MemoryCanary measure_canary() {
  const auto available = probe::available_memory(DiskTree());
  if (available && *available < kCanaryRoom) return {};
  const link::ProcessorTimes before = link::read_processor_times();
  const Seconds own_before = own_processor_time();
  const Instant begun = real_clock().now();
  std::vector<double> times = time_rounds(usable_cores());
  const Seconds elapsed = to_seconds(real_clock().now() - begun);
  const double own = (own_processor_time().value - own_before.value) / elapsed.value;
  std::ranges::sort(times);
  spec::MemoryCanary canary;
  canary.read = kCanaryBlock / Seconds{times[times.size() / 2]};
  canary.taken = link::taken_share(link::load_between(before, link::read_processor_times()), own);
  return canary;
}

}  // namespace yoke::survey
