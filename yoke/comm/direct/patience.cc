#include "yoke/comm/direct/patience.h"

#include <sys/resource.h>

#include <algorithm>

namespace yoke::direct {
namespace {

using namespace std::chrono_literals;
constexpr auto kSpin = 100us;
// A clock read costs as much as several looks.
constexpr unsigned kSpinsPerClock = 16;
// Two pushes within 40 ms are other work (time slices are 3 ms); one now and then is the kernel's own.
constexpr auto kWindow = 20ms;
constexpr std::int64_t kPushes = 2;
constexpr std::chrono::nanoseconds kBanFirst = 100ms, kBanMost = 4s;

std::int64_t involuntary_switches() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

bool Patience::spin() {
  if (never_ || pushed_aside_) return false;
  if (spins_++ % kSpinsPerClock != 0) return true;
  const Instant now = real_clock().now();
  if (spins_ == 1) spin_until_ = now + kSpin;
  return now < spin_until_;
}

void Patience::look_around() {
  const Instant now = real_clock().now();
  if (pushed_aside_ && now < sleep_until_) return;
  const std::int64_t switches = involuntary_switches();
  const std::int64_t pushes = switches - switches_;
  const auto elapsed = now - look_since_;
  const bool fresh = look_since_ == Instant{} || pushed_aside_;
  if (pushed_aside_) quiet_since_ = now;
  pushed_aside_ = false;
  // Over longer times the rate decides, as operations may be rare.
  if (!fresh && pushes >= kPushes && pushes * kWindow >= elapsed) {
    pushed_aside_ = true;
    sleep_until_ = now + ban_;
    ban_ = std::min(ban_ * 2, kBanMost);
  } else if (!fresh && now - quiet_since_ > kBanMost) {
    ban_ = kBanFirst;
  }
  if (fresh || pushed_aside_ || elapsed > kWindow) {
    look_since_ = now;
    switches_ = switches;
  }
}

}  // namespace yoke::direct
