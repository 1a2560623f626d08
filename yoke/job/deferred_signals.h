// Ctrl-C, SIGTERM and SIGHUP held back from this thread and those that it starts, to be taken as an answer. A job ends
// its ranks over channels whose waits an interrupt would break off (base/process.h): so the signal is taken here first,
// and raised again (base/interrupt.h) once the ranks are gone. Made and destroyed in one thread.
#pragma once
#include <csignal>
#include <optional>

namespace yoke::job {

class DeferredSignals {
 public:
  DeferredSignals();
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;
  ~DeferredSignals();  // as it was before

  std::optional<int> take() const;  // one that came since, from any thread; nothing where none did
  // As if it had just come, with the program's own handler; from any thread.
  static void redeliver(int signal_number);

 private:
  sigset_t before_;
};

}  // namespace yoke::job
