#include "yoke/bench/pinned_threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <thread>

#include "yoke/base/clock.h"

namespace yoke::bench {
namespace {

bool pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;  // 0: this thread
}

}  // namespace

PinnedRounds run_pinned(const std::vector<int>& cores, int rounds, const MakeWork& make_work) {
  PinnedRounds result;
  std::atomic<bool> pinned = true;
  std::atomic<bool> failed = false;
  std::vector<std::exception_ptr> errors(cores.size());
  std::vector<Instant> begins(static_cast<std::size_t>(rounds));
  std::vector<std::vector<Instant>> ends(cores.size(), begins);
  std::barrier meet(static_cast<std::ptrdiff_t>(cores.size()));

  const auto one_thread = [&](std::size_t index) {
    // After a failure the thread still comes to every meeting, for the others wait there.
    const auto guarded = [&](const auto& step) {
      if (failed) return;
      try {
        step();
      } catch (...) {
        errors[index] = std::current_exception();
        failed = true;
      }
    };
    std::function<void()> work;
    guarded([&] {
      if (!pin_to(cores[index])) pinned = false;
      work = make_work(cores[index]);
      work();  // once unmeasured: caches, pages and clock rates settle
    });
    for (std::size_t round = 0; round < begins.size(); ++round) {
      meet.arrive_and_wait();
      if (index == 0) begins[round] = real_clock().now();
      guarded(work);
      ends[index][round] = real_clock().now();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < cores.size(); ++i) threads.emplace_back(one_thread, i);
  threads.clear();  // joins
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (std::size_t round = 0; round < begins.size(); ++round) {
    Instant last = begins[round];
    for (const auto& of_thread : ends) last = std::max(last, of_thread[round]);
    result.seconds.push_back(to_seconds(last - begins[round]).value);
  }
  result.pinned = pinned;
  return result;
}

}  // namespace yoke::bench
