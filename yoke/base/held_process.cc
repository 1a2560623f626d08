#include "yoke/base/held_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"

namespace yoke {

// By system calls: glibc's <sys/pidfd.h> of Debian 12 is not for C++.
std::optional<HeldProcess> HeldProcess::open(const ProcessId& process) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd && errno != ESRCH) throw system_error(errno, fmt::format("cannot hold process {}", process.pid));
  // The descriptor first: where the start is the right one now, it is that of what we hold, unless that has ended.
  if (!fd || living_process(process.pid) != process) return std::nullopt;
  HeldProcess held(process.pid, std::move(fd));
  if (held.has_ended()) return std::nullopt;
  return held;
}

bool HeldProcess::send(int signal_number) const {
  if (syscall(SYS_pidfd_send_signal, fd_.get(), signal_number, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  throw system_error(errno, fmt::format("cannot signal process {}", pid_));
}

bool HeldProcess::wait_until_ended(Deadline deadline) const {
  for (;;) {
    pollfd waiting{.fd = fd_.get(), .events = POLLIN};
    if (poll(&waiting, 1, deadline.poll_timeout_ms(1000)) > 0) return true;
    if (deadline.expired()) return false;
  }
}

}  // namespace yoke
