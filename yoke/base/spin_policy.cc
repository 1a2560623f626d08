#include "yoke/base/spin_policy.h"

#include <algorithm>

namespace yoke {
namespace {

using namespace std::chrono_literals;
constexpr auto kSpin = 50us;
// A clock read costs as much as several looks.
constexpr unsigned kSpinsPerClock = 16;
// Slices of Linux are 0.75 ms and more; what pushes us aside on a quiet machine takes tens of microseconds.
constexpr auto kJump = 500us;
// One jump alone may be the hypervisor's.
constexpr auto kInARow = 100ms;
constexpr std::chrono::nanoseconds kJumpBanFirst = 100ms, kMaxJumpBan = 4s;
// A peer that is late a few times is only late. Trying again costs these many spins.
constexpr int kMaxFruitlessSpins = 4;
constexpr std::chrono::nanoseconds kMinSpinBackoff = 5ms, kMaxSpinBackoff = 80ms;
// As long without a ban, and the next one is a first one again.
constexpr auto kForgotten = 1s;

}  // namespace

bool SpinPolicy::spin() {
  if (never_) return false;
  if (banned_) {
    if (clock_->now() < banned_until_) return false;
    banned_ = false;
  }
  if (++spins_ % kSpinsPerClock != 0) return true;
  const Instant now = clock_->now();
  if (spins_ == kSpinsPerClock) {
    spin_until_ = now + kSpin;
  } else if (now - looked_at_ > kJump) {
    jumped(now);
  }
  looked_at_ = now;
  if (banned_) return false;
  if (now < spin_until_) return true;
  spun_without_result(now);
  return false;
}

void SpinPolicy::jumped(Instant now) {
  const bool in_a_row = now - jumped_at_ < kInARow;
  jumped_at_ = now;
  if (in_a_row) ban(now, kJumpBanFirst, kMaxJumpBan);
}

void SpinPolicy::spun_without_result(Instant now) {
  if (++fruitless_ >= kMaxFruitlessSpins) ban(now, kMinSpinBackoff, kMaxSpinBackoff);
}

void SpinPolicy::ban(Instant now, std::chrono::nanoseconds first, std::chrono::nanoseconds most) {
  ban_ = now - banned_until_ > kForgotten ? first : std::clamp(ban_ * 2, first, most);
  banned_until_ = now + ban_;
  banned_ = true;
  fruitless_ = 0;
}

}  // namespace yoke
