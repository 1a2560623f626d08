#include "yoke/comm/direct/patience.h"

#include <sys/resource.h>

#include <algorithm>

namespace yoke::direct {
namespace {

using namespace std::chrono_literals;
constexpr auto kSpin = 100us;
// A clock read costs as much as several looks.
constexpr unsigned kSpinsPerClock = 16;
// The heart and the kernel push a spinning thread aside too, two to four times in 100 ms and for some microseconds
// each; other work does it at every time slice of 3 ms, for as long.
constexpr auto kWindow = 20ms;
constexpr std::int64_t kPushes = 2, kPushesSurely = 5;
constexpr std::chrono::nanoseconds kSlice = 1ms, kSurelyWithin = 50ms;
constexpr std::chrono::nanoseconds kBanFirst = 100ms, kBanMost = 4s;

std::chrono::nanoseconds to_time(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

bool Patience::spin() {
  if (never_ || pushed_aside_) return false;
  if (++spins_ % kSpinsPerClock != 0) return true;
  const Instant now = real_clock().now();
  if (spins_ == kSpinsPerClock) spin_until_ = now + kSpin;
  return now < spin_until_;
}

Patience::Usage Patience::usage_now() {
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return {};
  return {usage.ru_nivcsw, usage.ru_nvcsw, to_time(usage.ru_utime) + to_time(usage.ru_stime)};
}

void Patience::look_around() {
  const Instant now = real_clock().now();
  if (pushed_aside_ && now < sleep_until_) return;
  const Usage usage = usage_now();
  const auto elapsed = now - look_since_;
  const bool fresh = look_since_ == Instant{} || pushed_aside_;
  if (pushed_aside_) quiet_since_ = now;
  pushed_aside_ = false;
  if (!fresh) {
    const std::int64_t pushes = usage.pushed - usage_.pushed;
    const bool only_spun = usage.slept == usage_.slept;
    const bool lost_slices = only_spun && elapsed - (usage.ran - usage_.ran) >= pushes * kSlice;
    pushed_aside_ = (pushes >= kPushes && lost_slices) || (pushes >= kPushesSurely && elapsed <= kSurelyWithin);
  }
  if (pushed_aside_) {
    sleep_until_ = now + ban_;
    ban_ = std::min(ban_ * 2, kBanMost);
  } else if (!fresh && now - quiet_since_ > kBanMost) {
    ban_ = kBanFirst;
  }
  if (fresh || pushed_aside_ || elapsed > kWindow) {
    look_since_ = now;
    usage_ = usage;
  }
}

}  // namespace yoke::direct
