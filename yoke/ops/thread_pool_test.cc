#include "yoke/ops/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::ops {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceWhateverTheSizes) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 97, 1000}) {
      for (const std::int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        pool.parallel_for(count, grain, [&](tensor::Range range) {
          for (std::int64_t i = range.begin; i < range.end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (const auto& times : seen) EXPECT_EQ(times, 1);
      }
    }
  }
}

TEST(ThreadPool, APieceThatThrowsEndsTheLoopAndThePoolGoesOn) {
  ThreadPool pool(3);
  const auto fail = [](tensor::Range range) {
    if (range.begin == 40) throw Error(ErrorCode::kInvalid, "piece 40");
  };
  EXPECT_ERROR(pool.parallel_for(100, 1, fail), ErrorCode::kInvalid, "piece 40");
  std::atomic<int> count{0};
  pool.parallel_for(100, 1, [&](tensor::Range) { ++count; });
  EXPECT_EQ(count, 100);
}

TEST(ThreadPool, ManyShortLoopsFollowEachOther) {
  ThreadPool pool(4);
  std::atomic<std::int64_t> sum{0};
  for (int i = 0; i < 2000; ++i) pool.parallel_for(8, 1, [&](tensor::Range range) { sum += range.begin; });
  EXPECT_EQ(sum, 2000 * 28);
}

TEST(ThreadPool, WorkersThatSleptTakePartAgain) {
  ThreadPool pool(2);
  std::atomic<int> pieces{0};
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than anybody spins
    pool.parallel_for(64, 1, [&](tensor::Range) { ++pieces; });
  }
  EXPECT_EQ(pieces, 20 * 64);
}

TEST(ThreadPool, NobodySpinsInACrowd) {
  ThreadPool pool(3, SpinPolicy::CoreSharing::kMoreThanCores);
  std::atomic<std::int64_t> sum{0};
  for (int i = 0; i < 300; ++i) pool.parallel_for(8, 1, [&](tensor::Range range) { sum += range.begin; });
  EXPECT_EQ(sum, 300 * 28);
}

// Microseconds of an empty loop on two threads, over some tenths of a second so that the worker spins, sleeps and is
// woken as it does at work: median and 99th percentile, and the part of the loops in which the worker took a piece.
struct LoopTimes {
  double median = 0, late = 0, shared = 0;
};
LoopTimes empty_loop() {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> by_worker{0};
  const auto loop = [&] {
    pool.parallel_for(2, 1, [&](tensor::Range) {
      if (std::this_thread::get_id() != caller) by_worker.fetch_add(1, std::memory_order_relaxed);
    });
  };
  const auto begin = std::chrono::steady_clock::now();
  while (by_worker == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(5)) loop();
  by_worker = 0;
  std::vector<double> times;
  for (int i = 0; i < 20'000; ++i) {
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 1000 == 0 ? 300 : 20));
    const auto start = std::chrono::steady_clock::now();
    loop();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100], by_worker.load() / 20'000.0};
}

// Microseconds in which a value goes to another thread and comes back, the median: what no loop can be quicker than.
// 0.1 to 0.3 between the cores of one processor, several times that on some virtual machines.
double exchange_time() {
  std::atomic<int> value{0};  // odd: a question
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over.load(std::memory_order_relaxed)) {
      const int asked = value.load(std::memory_order_acquire);
      if (asked % 2 == 1) value.store(asked + 1, std::memory_order_release);
    }
  });
  std::vector<double> times;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);  // one core alone takes that long
  for (int i = 0; i < 20'000 && std::chrono::steady_clock::now() < end; ++i) {
    const auto start = std::chrono::steady_clock::now();
    value.store(2 * i + 1, std::memory_order_release);
    while (value.load(std::memory_order_acquire) != 2 * i + 2) {
    }
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  over = true;
  other.join();
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void record(const LoopTimes& times) {
  testing::Test::RecordProperty("median_us", fmt::format("{:.2f}", times.median));
  testing::Test::RecordProperty("p99_us", fmt::format("{:.2f}", times.late));
  testing::Test::RecordProperty("shared", fmt::format("{:.2f}", times.shared));
}

TEST(LabTimingThreadPool, AnEmptyLoopTakesTwoMicroseconds) {
  const double exchange = exchange_time();
  const LoopTimes times = empty_loop();
  record(times);
  testing::Test::RecordProperty("exchange_us", fmt::format("{:.2f}", exchange));
  EXPECT_LE(times.median, std::max(2.0, 5 * exchange))
      << "99% within " << times.late << " us; an exchange takes " << exchange << " us";
}

TEST(LabTimingThreadPool, AnEmptyLoopTakesTwentyMicrosecondsWhileAllCoresAreBusy) {
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    busy.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
      }
    });
  }
  const LoopTimes times = empty_loop();
  over = true;
  for (std::thread& thread : busy) thread.join();
  record(times);
  EXPECT_LE(times.median, 20) << "99% within " << times.late << " us";
}

}  // namespace
}  // namespace yoke::ops
