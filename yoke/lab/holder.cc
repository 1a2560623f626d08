#include "yoke/lab/holder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/text.h"
#include "yoke/lab/parts.h"

namespace yoke::lab {
namespace {

constexpr std::string_view kReady = "ready\n";

// The descriptors of a part, each in its place beyond those that they are moved to.
struct PartFds {
  UniqueFd null, log, ready, lock;
};

UniqueFd out_of_the_way(const UniqueFd& fd) {
  UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, kLockFd + 1));
  if (!moved) throw system_error(errno, "cannot duplicate a descriptor");
  return moved;
}

// A part stays, and keeps the environment that it was started with: only what it needs of ours, no secret that may be
// there, and no mark by which a runner of `yoke lab up` would find and end what it left running.
std::vector<char*> part_environment() {
  static constexpr std::array kKept = {"PATH=", "HOME=", "XDG_RUNTIME_DIR=", "TMPDIR=", "LD_LIBRARY_PATH="};
  std::vector<char*> kept;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_needed =
        std::any_of(kKept.begin(), kKept.end(), [&](const char* start) { return text.starts_with(start); });
    if (is_needed || name.ends_with("SAN_OPTIONS")) kept.push_back(*entry);  // of the sanitizers
  }
  kept.push_back(nullptr);
  return kept;
}

// What the child does between fork and exec: only system calls.
[[noreturn]] void become_part(char* const* argv, char* const* environment, const PartFds& fds) {
  setsid();
  umask(022);  // as a machine's first process has it, whatever its starter's is
  const bool placed = dup2(fds.null.get(), STDIN_FILENO) >= 0 && dup2(fds.log.get(), STDOUT_FILENO) >= 0 &&
                      dup2(fds.log.get(), STDERR_FILENO) >= 0 && dup2(fds.ready.get(), kReadyFd) >= 0 &&
                      dup2(fds.lock.get(), kLockFd) >= 0;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (placed) execve("/proc/self/exe", argv, environment);
  _exit(127);
}

}  // namespace

StartingPart start_part(std::string name, const std::vector<std::string>& arguments, const std::filesystem::path& log,
                        const LabLock& lock) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  PartFds fds{.null = out_of_the_way(open_file("/dev/null", O_RDONLY)),
              .log = out_of_the_way(open_file(log, O_WRONLY | O_CREAT | O_APPEND, 0600)),
              .ready = out_of_the_way(write_end),
              .lock = out_of_the_way(lock.fd())};
  write_end.reset();
  std::vector<std::string> words = {"yoke"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> environment = part_environment();
  // Twice, so that the part is nobody's child and never a zombie of ours.
  const int status = run_forked([&] {
    fork_call([&]() -> int { become_part(argv.data(), environment.data(), fds); });
    return 0;
  });
  if (status != 0) throw Error(ErrorCode::kExhausted, fmt::format("cannot start {}", name));
  return {.name = std::move(name), .ready = std::move(read_end)};
}

void wait_until_ready(StartingPart& part, Deadline deadline) {
  std::string said;
  for (;;) {
    throw_if_interrupted();
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, fmt::format("{} did not come up", part.name));
    pollfd waiting{.fd = part.ready.get(), .events = POLLIN};
    if (poll(&waiting, 1, deadline.poll_timeout_ms(100)) <= 0) continue;
    char buffer[4096];
    const ssize_t count = read(part.ready.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) said.append(buffer, static_cast<std::size_t>(count));
    if (said == kReady) return;
    if (count > 0) continue;
    // The end of the pipe: it failed, and said why if it could. Its words are "code message".
    const std::size_t space = said.find(' ');
    for (const ErrorCodeInfo& row : error_codes()) {
      if (said.substr(0, space) == row.name)
        throw Error(row.code, fmt::format("{}: {}", part.name, trim(said.substr(space))));
    }
    throw Error(ErrorCode::kInternal, fmt::format("{} ended while starting", part.name), "see its log");
  }
}

void report_ready() {
  // A starter that is gone cannot have wanted this part.
  if (write(kReadyFd, kReady.data(), kReady.size()) != static_cast<ssize_t>(kReady.size())) {
    throw Error(ErrorCode::kInterrupted, "the starter is gone");
  }
  close(kReadyFd);
}

void report_failure(const std::exception& failure) {
  const auto* error = dynamic_cast<const Error*>(&failure);
  const std::string text =
      fmt::format("{} {}\n", info(error ? error->code() : ErrorCode::kInternal).name, failure.what());
  if (write(kReadyFd, text.data(), text.size()) < 0) { /* the log has it too */
  }
}

int run_holder(const std::string& lab, int nodes) {
  try {
    record_part(lab, kHolderNumber);
    for (int node = 0; node <= nodes; ++node) {
      if (unshare(CLONE_NEWNET) != 0) {
        throw system_error(errno, "cannot make a network namespace", "a lab needs root, or user namespaces");
      }
      const UniqueFd fd = open_file("/proc/self/ns/net", O_RDONLY);
      if (dup3(fd.get(), kFirstNamespaceFd + node, O_CLOEXEC) < 0) throw system_error(errno, "cannot keep a namespace");
    }
    report_ready();
  } catch (const std::exception& failure) {
    report_failure(failure);
    return 1;
  }
  while (interrupt_signal() == 0) pause();
  return 0;
}

}  // namespace yoke::lab
