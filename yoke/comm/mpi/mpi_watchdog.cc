#include "yoke/comm/mpi/mpi_watchdog.h"

namespace yoke::comm::mpi {
namespace {

using namespace literals;

constexpr Seconds kPeriod = 50_ms;  // how late an overdue call is noticed
constexpr Seconds kGrace = 1_s;     // after an abort: calls that are about to return do

}  // namespace

MpiWatchdog::MpiWatchdog(std::function<void(const Error&)> end_job)
    : end_job_(std::move(end_job)), thread_([this] { watch(); }) {}

MpiWatchdog::~MpiWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
}

MpiWatchdog::Guard::Guard(MpiWatchdog& watchdog, MpiWhat what, Deadline deadline)
    : watchdog_(watchdog), what_(std::move(what)), deadline_(deadline) {
  const std::lock_guard lock(watchdog_.mutex_);
  watchdog_.guards_.push_back(this);
}

MpiWatchdog::Guard::~Guard() {
  const std::lock_guard lock(watchdog_.mutex_);
  std::erase(watchdog_.guards_, this);
}

void MpiWatchdog::hurry(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (hurry_reason_) return;
  hurry_reason_ = reason;
  hurry_deadline_ = Deadline::after(kGrace);
}

std::optional<Error> MpiWatchdog::overdue() const {
  for (const Guard* guard : guards_) {
    if (hurry_deadline_.expired()) return hurry_reason_;
    if (guard->deadline_.expired()) {
      return Error(ErrorCode::kTimeout, guard->what_() + " did not end in time",
                   "a blocked MPI call cannot be left, so the job ends; look for the rank that did not come");
    }
  }
  return std::nullopt;
}

void MpiWatchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (const std::optional<Error> reason = overdue()) {
      stop_ = true;
      lock.unlock();  // whatever ends the job may take long, and calls may end meanwhile
      return end_job_(*reason);
    }
    stop_changed_.wait_for(lock, to_chrono(kPeriod));
  }
}

}  // namespace yoke::comm::mpi
