#include "yoke/base/clock.h"

#include <cmath>
#include <ctime>
#include <thread>

namespace yoke {
namespace {

class RealClock : public Clock {
 public:
  Instant now() const override { return std::chrono::steady_clock::now(); }
  void sleep(Seconds time) override { std::this_thread::sleep_for(to_chrono(time)); }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

Instant FakeClock::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void FakeClock::advance(Seconds time) {
  const std::lock_guard lock(mutex_);
  now_ += to_chrono(time);
}

Deadline Deadline::after(Seconds time, const Clock& clock) {
  const Instant now = clock.now();
  // Beyond a century a deadline is none; adding it to `now` could overflow.
  if (time.value > 3e9) return Deadline(Instant::max(), clock);
  return Deadline(now + to_chrono(time), clock);
}

Seconds Deadline::remaining() const {
  const Instant now = clock_->now();
  return at_ <= now ? Seconds{0} : to_seconds(at_ - now);
}

int Deadline::poll_timeout_ms(int most) const {
  return static_cast<int>(std::min<double>(most, std::ceil(remaining().value * 1e3)));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace yoke
