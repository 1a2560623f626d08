#include "yoke/terminal/typed_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"

namespace yoke::terminal {

std::optional<std::string> read_typed_line() {
  std::string line;
  for (;;) {
    throw_if_interrupted();
    pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    char c = 0;
    const ssize_t count = read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
}

namespace {

class HiddenTyping {
 public:
  HiddenTyping() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) throw system_error(errno, "cannot ask at this terminal");
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    // What was typed before we asked is not meant for us.
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenTyping() {
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    fmt::print(stderr, "\n");  // the one that was not shown
  }
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;

 private:
  termios before_{};
};

}  // namespace

std::string read_secret(const std::string& prompt) {
  const HiddenTyping hidden;
  fmt::print(stderr, "{}", prompt);
  std::fflush(stderr);
  std::optional<std::string> secret = read_typed_line();
  if (!secret) throw Error(ErrorCode::kUsage, "no password was given", "type it at the prompt");
  return *std::move(secret);
}

std::string read_standard_input(Bytes max) {
  const UniqueFd input(dup(STDIN_FILENO));
  if (!input) throw system_error(errno, "cannot read standard input");
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    wait_for_input(input);
    const std::size_t count = read_some(input, buffer, sizeof buffer, "standard input");
    if (count == 0) break;
    text.append(buffer, count);
    if (std::ssize(text) > max.value) {
      throw Error(ErrorCode::kInvalid, fmt::format("standard input is larger than {}", yoke::to_string(max)));
    }
  }
  return text;
}

}  // namespace yoke::terminal
