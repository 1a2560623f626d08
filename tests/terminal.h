// The program with a terminal of its own.
//
//   Terminal terminal(scratch.path(), {"chat", "nano"});
//   ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
//   terminal.type("hello\n");
//   EXPECT_EQ(terminal.exit_status(), 0);
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/program.h"
#include "yoke/base/clock.h"

namespace yoke::tests {

struct TerminalOptions {
  unsigned short columns = 80;
  std::vector<std::pair<std::string, std::string>> environment = {};
  // A script for bash with job control, in which "$@" is the program with its arguments. Without a shell around it a
  // program cannot be suspended.
  std::string script = {};
};

class Terminal {
 public:
  Terminal(const std::filesystem::path& folder, std::vector<std::string> arguments,
           const TerminalOptions& options = {}) {
    arguments.insert(arguments.begin(), YOKE_PROGRAM);
    if (!options.script.empty()) {
      const std::vector<std::string> shell = {"/bin/bash", "-c", "set -m; " + options.script, "bash"};
      arguments.insert(arguments.begin(), shell.begin(), shell.end());
    }
    std::vector<char*> argv;
    for (std::string& word : arguments) argv.push_back(word.data());
    argv.push_back(nullptr);
    const winsize size{.ws_row = 24, .ws_col = options.columns, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      setenv("TERM", "xterm", 1);
      setenv("LC_ALL", "C.UTF-8", 1);
      setenv("XDG_DATA_HOME", (folder / "data").c_str(), 1);
      unsetenv("NO_COLOR");
      for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
      if (chdir(folder.c_str()) == 0) execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view keys) { EXPECT_EQ(write(fd_, keys.data(), keys.size()), std::ssize(keys)); }
  void resize(unsigned short columns, unsigned short rows) {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  // Whether it shows what is typed, and takes it by lines: as a shell has it.
  bool echoes() const {
    termios settings{};
    return tcgetattr(fd_, &settings) == 0 && (settings.c_lflag & (ECHO | ICANON)) == (ECHO | ICANON);
  }
  // Whether it shows this within half a minute, after what was waited for before.
  bool shows(std::string_view wanted) {
    const Deadline deadline = Deadline::after({30});
    while (true) {
      if (const std::size_t at = screen_.find(wanted, seen_); at != std::string::npos) {
        seen_ = at + wanted.size();
        return true;
      }
      if (deadline.expired() || !read_more()) return false;
    }
  }
  int exit_status() {
    const Deadline deadline = Deadline::after({30});
    while (!deadline.expired() && read_more()) {
    }
    if (deadline.expired()) kill(pid_, SIGKILL);  // it did not end: told by its status
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return exit_status_of(status);
  }
  const std::string& screen() const { return screen_; }
  pid_t pid() const { return pid_; }

 private:
  bool read_more() {
    pollfd waiting{fd_, POLLIN, 0};
    if (poll(&waiting, 1, 100) == 0) return true;
    char buffer[4096];
    const ssize_t count = read(fd_, buffer, sizeof buffer);
    if (count <= 0) return false;  // the program has gone
    screen_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;
};

// Ctrl-C after a while, and how long the end took.
struct Interrupted {
  int status = -1;
  Seconds took;
};

inline Interrupted interrupt_after(Terminal& terminal, Seconds wait) {
  real_clock().sleep(wait);
  const Instant start = real_clock().now();
  terminal.type("\x03");
  Interrupted result{.status = terminal.exit_status()};
  result.took = to_seconds(real_clock().now() - start);
  return result;
}

}  // namespace yoke::tests
