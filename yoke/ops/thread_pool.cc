#include "yoke/ops/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "yoke/base/check.h"

namespace yoke {

int available_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  YOKE_CHECK_GE(threads, 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  started_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(Range)>& piece) {
  YOKE_CHECK(count >= 0 && grain >= 1, "{} by {}", count, grain);
  const Loop loop{&piece, count, grain};
  if (workers_.empty() || count <= grain) {  // waking others would cost more than it brings
    if (count > 0) piece({0, count});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    loop_ = loop;
    next_ = 0;
    failure_ = nullptr;
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  started_.notify_all();
  run_pieces(loop);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::run_pieces(const Loop& loop) {
  try {
    for (;;) {
      const std::int64_t begin = next_.fetch_add(loop.grain);
      if (begin >= loop.count) return;
      (*loop.piece)({begin, std::min(begin + loop.grain, loop.count)});
    }
  } catch (...) {
    next_ = loop.count;  // the other pieces are not begun
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::work() {
  std::uint64_t seen = 0;
  for (;;) {
    Loop loop;
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return ending_ || generation_ != seen; });
      if (ending_) return;
      seen = generation_;
      loop = loop_;
    }
    run_pieces(loop);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) finished_.notify_one();
  }
}

}  // namespace yoke
