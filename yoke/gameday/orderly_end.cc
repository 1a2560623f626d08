#include "yoke/gameday/orderly_end.h"

#include <sys/wait.h>

#include <csignal>

#include "yoke/base/clock.h"

namespace yoke::gameday {
namespace {

using namespace literals;

// A second Ctrl-C must not end this wait, so it is not Process::wait().
bool has_ended(pid_t process) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
  return info.si_pid == process;
}

}  // namespace

void end_orderly(const Process& process) noexcept {
  if (has_ended(process.pid())) return;
  kill(process.pid(), SIGTERM);
  const Deadline deadline = Deadline::after(2_s);
  while (!has_ended(process.pid()) && !deadline.expired()) real_clock().sleep(5_ms);
}

}  // namespace yoke::gameday
