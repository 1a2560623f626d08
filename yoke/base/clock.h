// Time behind a seam, so that waiting can be tested without waiting. RealClock is the machine's monotonic clock;
// FakeClock moves only when told. A Deadline is the one form in which a wait is bounded.
#pragma once
#include <chrono>
#include <mutex>
#include <string>

#include "yoke/base/units.h"

namespace yoke {

using Instant = std::chrono::steady_clock::time_point;

constexpr std::chrono::nanoseconds to_chrono(Seconds time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(time.value));
}
constexpr Seconds to_seconds(std::chrono::nanoseconds time) { return {std::chrono::duration<double>(time).count()}; }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  virtual void sleep(Seconds time) = 0;
};

// The machine's clock; safe from any thread.
Clock& real_clock();

class FakeClock : public Clock {
 public:
  Instant now() const override;
  void sleep(Seconds time) override { advance(time); }
  void advance(Seconds time);

 private:
  mutable std::mutex mutex_;
  Instant now_{};
};

class Deadline {
 public:
  static Deadline after(Seconds time, const Clock& clock = real_clock());
  static Deadline never() { return Deadline(Instant::max(), real_clock()); }

  bool expired() const { return remaining().value <= 0; }
  Seconds remaining() const;  // zero when expired; about 292 years for never()
  // For poll(2): whole milliseconds rounded up, at most `most`, so that a loop can look around in between.
  int poll_timeout_ms(int most = 1000) const;

 private:
  Deadline(Instant at, const Clock& clock) : at_(at), clock_(&clock) {}
  Instant at_;
  const Clock* clock_;
};

// The wall clock as 2026-11-15T09:30:00Z, for records that people read.
std::string utc_now();

}  // namespace yoke
