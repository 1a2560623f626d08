#include "yoke/base/fork_call.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

constexpr int kLookMs = 100;

[[noreturn]] void call_and_exit(const std::function<int()>& function) noexcept {
  int status = 1;
  try {
    status = function();
  } catch (const std::exception& failure) {
    const std::string text = fmt::format("yoke: {}\n", failure.what());
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* nowhere left to say it */
    }
  }
  _exit(status);
}

}  // namespace

pid_t fork_call(const std::function<int()>& function) {
  const pid_t pid = fork();
  if (pid < 0) throw system_error(errno, "cannot fork");
  if (pid == 0) call_and_exit(function);
  return pid;
}

int wait_for_child(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw system_error(errno, fmt::format("cannot wait for process {}", child));
  }
  return status;
}

int wait_for_child(pid_t child, const std::function<void()>& look) {
  // Without one (an old kernel) poll() just sleeps.
  const UniqueFd end(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(child, &status, WNOHANG)) != child;) {
    if (ended < 0 && errno != EINTR) throw system_error(errno, fmt::format("cannot wait for process {}", child));
    look();
    pollfd waited{end.get(), POLLIN, 0};
    poll(&waited, 1, kLookMs);
  }
  return status;
}

}  // namespace yoke
