#include "yoke/base/cpu_budget.h"

#include <fmt/format.h>

#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke {
namespace {

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

CpuBudget::CpuBudget(std::chrono::nanoseconds allowed, std::string what)
    : what_(std::move(what)), allowed_(allowed), last_tick_(ticks()) {}

std::int64_t CpuBudget::ticks() { return read_clock(CLOCK_MONOTONIC_COARSE).count(); }

std::chrono::nanoseconds CpuBudget::used() const {
  return start_ ? read_clock(CLOCK_THREAD_CPUTIME_ID) - *start_ : std::chrono::nanoseconds(0);
}

void CpuBudget::check_closely() {
  throw_if_interrupted();
  if (!start_) start_ = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (used() <= allowed_) return;
  const double seconds = std::chrono::duration<double>(allowed_).count();
  throw Error(ErrorCode::kExhausted, fmt::format("{} takes more than {:.1f} s of processor time", what_, seconds));
}

}  // namespace yoke
