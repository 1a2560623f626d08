// A few threads that share loops. parallel_for splits [0, count) into pieces of `grain`; which thread runs which piece
// is left to chance, so a piece must not depend on it: results are then the same with any number of threads. The caller
// works along and returns when all pieces are done, or throws what the first failing piece threw. One loop at a time,
// from one thread, never from inside a piece.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "yoke/tensor/shape.h"

namespace yoke {

// The processors that this process may run on.
int available_processors();

class ThreadPool {
 public:
  explicit ThreadPool(int threads = available_processors());  // the caller counts as one
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  void parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(Range)>& piece);

 private:
  struct Loop {
    const std::function<void(Range)>* piece = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
  };
  void work();  // of a worker, until the end
  void run_pieces(const Loop& loop);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable finished_;
  Loop loop_;
  std::uint64_t generation_ = 0;  // of loops; a worker takes part in each once
  int busy_ = 0;                  // workers in the current loop
  bool ending_ = false;
  std::exception_ptr failure_;
  std::atomic<std::int64_t> next_{0};
};

}  // namespace yoke
