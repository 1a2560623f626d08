#include "yoke/lab/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

constexpr std::string_view kReady = "ready\n";

// What the child does between fork and exec: only system calls.
[[noreturn]] void become_part(char* const* argv, char* const* environment, int ready, int log, int null) {
  setsid();
  const bool placed = dup2(null, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0 &&
                      dup2(ready, kReadyFd) >= 0;
  if (ready == kReadyFd) fcntl(ready, F_SETFD, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (placed) execve("/proc/self/exe", argv, environment);
  _exit(127);
}

}  // namespace

std::optional<int> lab_part_of(const std::vector<std::string>& words, const std::string& folder) {
  if (words.size() < 4 || words[2] != folder) return std::nullopt;
  if (words[1] == "lab-keeper") return 0;
  if (words[1] != "lab-node" && words[1] != kPlainNodeWord) return std::nullopt;
  return std::atoi(words[3].c_str());
}

StartingPart start_part(std::string name, const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe");
  UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const UniqueFd log_file = open_file(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const UniqueFd null = open_file("/dev/null", O_RDONLY);
  std::vector<std::string> words = {"yoke"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Without the mark by which a runner of `yoke lab up` would find and end what it left running: this is meant to stay.
  std::vector<char*> environment;
  for (char** entry = environ; *entry; ++entry) {
    if (!std::string_view(*entry).starts_with(std::string(kProcessTokenVariable) + "=")) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  // Twice, so that the part is nobody's child and never a zombie of ours.
  const pid_t child = fork();
  if (child < 0) throw system_error(errno, "cannot fork");
  if (child == 0) {
    const pid_t part = fork();
    if (part == 0) become_part(argv.data(), environment.data(), write_end.get(), log_file.get(), null.get());
    _exit(part < 0 ? 1 : 0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
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
    throw Error(ErrorCode::kInternal, fmt::format("{} ended while starting", part.name), "its log says more");
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

int run_keeper(int nodes) {
  try {
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

}  // namespace yoke
