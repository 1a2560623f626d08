// How long a thread looks for what it waits for by itself before it sleeps in the kernel: a rank for its data, a worker
// of a thread pool for its next loop. Waking an idle core takes tens of
// microseconds, so on a quiet machine looking wins; where the cores have other work it loses, in two ways that show:
// - The one that spins uses up its time slice and then stands in line for milliseconds just when its data come: the
// clock
//   jumps between two looks. Hearts, interrupts and the kernel's own threads push a spinning thread aside too, but for
//   microseconds.
// - The peer may have to run on this very core, and cannot while we spin: the spinning is always in vain.
// In either case we stop spinning for a while, each time for longer. One thread.
//
// Rejected: counting involuntary switches (getrusage), which on two cores with two spinning ranks rise by themselves.
#pragma once
#include "yoke/base/clock.h"

namespace yoke {

class SpinPolicy {
 public:
  enum class CoreSharing { kNone, kMoreThanCores };
  explicit SpinPolicy(CoreSharing core_sharing, const Clock& clock = real_clock())
      : clock_(&clock), never_(core_sharing == CoreSharing::kMoreThanCores) {}

  void begin_operation() { spins_ = 0; }
  void moved() {
    if (spins_ > 0) fruitless_ = 0;
    spins_ = 0;
  }
  // True: look once more; false: sleep.
  bool spin();
  void slept() { spins_ = 0; }

 private:
  void jumped(Instant now);
  void spun_without_result(Instant now);
  void ban(Instant now, std::chrono::nanoseconds first, std::chrono::nanoseconds most);

  const Clock* clock_;
  bool never_;
  bool banned_ = false;
  unsigned spins_ = 0;
  int fruitless_ = 0;  // times in a row
  Instant looked_at_{}, spin_until_{};
  Instant jumped_at_{}, banned_until_{};
  std::chrono::nanoseconds ban_{};
};

}  // namespace yoke
