#include "yoke/ops/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "yoke/base/check.h"

namespace yoke::ops {
namespace {

// Both orders of the kernel's check and our store are safe: a word that has changed is not slept on.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_on(std::atomic<std::uint32_t>& word, int threads) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads, SpinPolicy::CoreSharing core_sharing)
    : crowd_(core_sharing), patience_(core_sharing), parts_(static_cast<std::size_t>(std::max(threads, 1))) {
  YOKE_CHECK_GE(threads, 1);
  for (std::size_t i = 1; i < parts_.size(); ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  ending_ = true;
  ++loops_;
  wake_on(loops_, std::numeric_limits<int>::max());
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const Loop& loop) {
  YOKE_CHECK(loop.count >= 0 && loop.grain >= 1, "{} by {}", loop.count, loop.grain);
  if (workers_.empty() || loop.count <= loop.grain) {  // waking others would cost more than it brings
    if (loop.count > 0) loop.call(loop.piece, {0, loop.count});
    return;
  }
  loop_ = loop;
  cut(loop);
  gate_ = kOpen;
  ++loops_;
  if (sleepers_ > 0) wake_on(loops_, std::numeric_limits<int>::max());
  run_pieces(loop, 0);
  wait_for_workers();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::cut(const Loop& loop) {
  const std::int64_t pieces = tensor::ceil_divide(loop.count, loop.grain);
  const std::int64_t threads = std::ssize(parts_);
  for (std::int64_t t = 0; t < threads; ++t) {
    Part& part = parts_[static_cast<std::size_t>(t)];
    part.next.store(pieces * t / threads * loop.grain, std::memory_order_relaxed);
    part.end = std::min(loop.count, pieces * (t + 1) / threads * loop.grain);
  }
}

void ThreadPool::run_pieces(const Loop& loop, std::size_t thread) {
  try {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[(thread + i) % parts_.size()];
      for (;;) {
        const std::int64_t begin = part.next.fetch_add(loop.grain);
        if (begin >= part.end) break;
        loop.call(loop.piece, {begin, std::min(begin + loop.grain, part.end)});
      }
    }
  } catch (...) {
    for (Part& part : parts_) part.next = part.end;  // the other pieces are not begun
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::wait_for_workers() {
  std::uint32_t inside = gate_.fetch_and(~kOpen) & ~kOpen;
  patience_.begin_operation();
  while (inside != 0) {
    if (patience_.spin()) {
      relax();
    } else {
      caller_sleeps_ = true;
      sleep_on(gate_, inside);
      caller_sleeps_ = false;
      patience_.slept();
    }
    inside = gate_;
  }
  patience_.moved();
}

void ThreadPool::wait_for_loop(std::uint32_t seen, SpinPolicy& patience) {
  patience.begin_operation();
  while (loops_ == seen) {
    if (patience.spin()) {
      relax();
      continue;
    }
    ++sleepers_;
    sleep_on(loops_, seen);
    --sleepers_;
    patience.slept();
  }
  patience.moved();
}

void ThreadPool::work(std::size_t thread) {
  SpinPolicy patience(crowd_);
  std::uint32_t seen = 0;
  for (;;) {
    wait_for_loop(seen, patience);
    seen = loops_;
    if (ending_) return;
    std::uint32_t gate = gate_;
    while ((gate & kOpen) != 0 && !gate_.compare_exchange_weak(gate, gate + 1)) {
    }
    if ((gate & kOpen) == 0) continue;  // too late: the loop is done
    run_pieces(loop_, thread);
    if (--gate_ == 0 && caller_sleeps_) wake_on(gate_, 1);
  }
}

}  // namespace yoke::ops
