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
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/program.h"
#include "yoke/base/clock.h"

namespace yoke {

class Terminal {
 public:
  Terminal(const std::filesystem::path& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), YOKE_PROGRAM);
    std::vector<char*> argv;
    for (std::string& word : arguments) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
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
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return exit_status_of(status);
  }
  const std::string& screen() const { return screen_; }

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

}  // namespace yoke
