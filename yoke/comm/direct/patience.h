// How long a rank looks for data by itself before it sleeps in the kernel. Waking an idle core takes tens of
// microseconds, so on a quiet machine looking wins; where the cores have other work, whoever spins uses up its time
// slice and then stands in line for milliseconds just when its data come. The kernel counts how often a thread was
// pushed aside and how long it ran; where that tells of other work, we stop spinning for a while, each time for longer.
// One thread.
#pragma once
#include <cstdint>

#include "yoke/base/clock.h"

namespace yoke::direct {

class Patience {
 public:
  enum class Crowd { kNone, kMoreRanksThanCores };
  explicit Patience(Crowd crowd) : never_(crowd == Crowd::kMoreRanksThanCores) {}

  void begin_operation() {
    if (++operations_ % kLookEvery == 0) look_around();
  }
  void moved() { spins_ = 0; }
  // True: look once more; false: sleep.
  bool spin();
  void slept() { spins_ = 0; }

 private:
  static constexpr unsigned kLookEvery = 16;
  void look_around();

  const bool never_;
  bool pushed_aside_ = false;
  unsigned operations_ = 0;
  unsigned spins_ = 0;
  Instant spin_until_{};
  Instant look_since_{}, quiet_since_{}, sleep_until_{};
  struct Usage {
    std::int64_t pushed = 0, slept = 0;  // how often the thread left its core, by force and by itself
    std::chrono::nanoseconds ran{};
  };
  static Usage usage_now();
  Usage usage_;
  std::chrono::nanoseconds ban_ = std::chrono::milliseconds(100);
};

}  // namespace yoke::direct
