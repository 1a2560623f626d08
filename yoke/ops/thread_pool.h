// A few threads that share loops. parallel_for splits [0, count) into pieces of `grain`. Each thread has a part of
// them, one piece after the other, so that it reads memory as one stream; who is done takes pieces of the others'
// parts. Which thread runs which piece is thus left to chance, so a piece must not depend on it: results are then the
// same with any number of threads. The caller works along and returns when all pieces are done, or throws what the
// first failing piece threw. One loop at a time, from one thread, never from inside a piece.
//
// Between two loops workers spin for a while, then sleep (base/patience.h). A worker that has not begun when the last
// piece is taken is not waited for: where other work has the cores, the caller does the loop by itself.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "yoke/base/spin_policy.h"
#include "yoke/tensor/shape.h"

namespace yoke::ops {

class ThreadPool {
 public:
  // The caller counts as one thread. Where threads share cores with others, none of them spins.
  explicit ThreadPool(int threads, SpinPolicy::CoreSharing core_sharing = SpinPolicy::CoreSharing::kNone);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // `piece` is called with a Range; it is not copied, and nothing is allocated.
  template <class Piece>
  void parallel_for(std::int64_t count, std::int64_t grain, const Piece& piece) {
    run({.call = [](const void* what, tensor::Range range) { (*static_cast<const Piece*>(what))(range); },
         .piece = &piece,
         .count = count,
         .grain = grain});
  }

 private:
  struct Loop {
    void (*call)(const void* piece, tensor::Range range) = nullptr;
    const void* piece = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
  };
  // Pieces that one thread begins with.
  struct alignas(64) Part {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;  // of gate_: workers may still join the loop

  void run(const Loop& loop);
  void cut(const Loop& loop);
  void run_pieces(const Loop& loop, std::size_t thread);
  void work(std::size_t thread);  // of a worker, until the end
  void wait_for_loop(std::uint32_t seen, SpinPolicy& patience);
  void wait_for_workers();

  std::vector<std::thread> workers_;
  SpinPolicy::CoreSharing crowd_;
  SpinPolicy patience_;      // the caller's
  Loop loop_;                // these two are written while the gate is closed and no worker is inside
  std::vector<Part> parts_;  // the caller's first
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  alignas(64) std::atomic<std::uint32_t> loops_{0};  // begun so far; workers sleep on it
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::atomic<std::uint32_t> gate_{0};  // kOpen | workers inside; the caller sleeps on it
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> ending_{false};
};

}  // namespace yoke::ops
