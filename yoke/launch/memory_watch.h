// A thread that looks at the memory of the machine twenty times a second and, below a floor, kills the processes that
// it was given. It does not allocate, and its pages are locked where that is allowed: it must run when nothing else
// can.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>

#include "yoke/base/units.h"
#include "yoke/launch/memory_gauge.h"

namespace yoke::launch {

class MemoryWatch {
 public:
  MemoryWatch(Bytes floor, pid_t group);  // `group`: the process group that is killed first
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
  ~MemoryWatch();

  // Who is killed besides the group: processes that left it. Beyond 4,096 the rest is left to the owner.
  void set_processes(std::span<const pid_t> processes);

  bool has_tripped() const { return tripped_; }
  bool by_pressure() const { return by_pressure_; }
  Bytes available_at_trip() const { return Bytes{available_.load()}; }
  // What is available less than when the watch began: memory that CUDA took counts too.
  Bytes used_since_start() const { return Bytes{std::max<std::int64_t>(start_ - available_.load(), 0)}; }
  Bytes least() const { return Bytes{least_.load()}; }  // that was ever seen

 private:
  void run();
  void kill_all() const;

  MemoryGauge gauge_;
  std::int64_t floor_;
  std::int64_t start_;
  pid_t group_;
  std::array<std::atomic<pid_t>, 4096> processes_{};
  std::atomic<int> count_{0};
  std::atomic<bool> tripped_{false}, by_pressure_{false}, ends_{false};
  std::atomic<std::int64_t> available_{0}, least_{0};
  std::thread thread_;
};

// Locks this process in memory and makes it the last one that the kernel kills; what is not allowed is left.
void stay_alive();

}  // namespace yoke::launch
