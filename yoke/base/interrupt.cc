#include "yoke/base/interrupt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke {
namespace {

// Lock-free, so that a handler may write them; atomic, because any thread may wait.
std::atomic<int> received{0};
std::atomic<int> times_received{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int signal_number) {
  received = signal_number;
  if (++times_received >= 3) _exit(128 + signal_number);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal_number, &action, nullptr);
  // A closed pipe or socket is an error to report, not a death.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

int interrupt_signal() { return received; }
int interrupts_received() { return times_received; }

void throw_if_interrupted() {
  if (received == 0) return;
  throw Error(ErrorCode::kInterrupted, received == SIGINT ? std::string("stopped (Ctrl-C)")
                                                          : fmt::format("stopped by SIG{}", sigabbrev_np(received)));
}

}  // namespace yoke
