#include "yoke/job/deferred_signals.h"

#include <pthread.h>

#include <ctime>

namespace yoke::job {
namespace {

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

}  // namespace

DeferredSignals::DeferredSignals() {
  const sigset_t held = interrupts();
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

DeferredSignals::~DeferredSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> DeferredSignals::take() const {
  const sigset_t held = interrupts();
  const timespec now{};
  const int number = sigtimedwait(&held, nullptr, &now);
  if (number <= 0) return std::nullopt;
  return number;
}

void DeferredSignals::redeliver(int signal_number) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  raise(signal_number);  // delivered to this thread before raise() returns
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace yoke::job
