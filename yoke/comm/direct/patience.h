// How long a rank looks for data by itself before it sleeps in the kernel. Waking an idle core takes tens of
// microseconds, so on a quiet machine looking wins; where the cores have other work it loses, in two ways that show:
// - Whoever spins uses up its time slice and then stands in line for milliseconds just when its data come: the clock
//   jumps between two looks. Hearts, interrupts and the kernel's own threads push a spinning thread aside too, but for
//   microseconds.
// - The peer may have to run on this very core, and cannot while we spin: the spinning is always in vain.
// In either case we stop spinning for a while, each time for longer. One thread.
//
// Rejected: counting involuntary switches (getrusage), which on two cores with two spinning ranks rise by themselves.
#pragma once
#include "yoke/base/clock.h"

namespace yoke::direct {

class Patience {
 public:
  enum class Crowd { kNone, kMoreRanksThanCores };
  explicit Patience(Crowd crowd, const Clock& clock = real_clock())
      : clock_(&clock), never_(crowd == Crowd::kMoreRanksThanCores) {}

  void begin_operation() { spins_ = 0; }
  void moved() {
    if (spins_ > 0) in_vain_ = 0;
    spins_ = 0;
  }
  // True: look once more; false: sleep.
  bool spin();
  void slept() { spins_ = 0; }

 private:
  void jumped(Instant now);
  void spun_in_vain(Instant now);
  void ban(Instant now, std::chrono::nanoseconds first, std::chrono::nanoseconds most);

  const Clock* clock_;
  bool never_;
  bool banned_ = false;
  unsigned spins_ = 0;
  int in_vain_ = 0;  // times in a row
  Instant looked_at_{}, spin_until_{};
  Instant jumped_at_{}, banned_until_{};
  std::chrono::nanoseconds ban_{};
};

}  // namespace yoke::direct
