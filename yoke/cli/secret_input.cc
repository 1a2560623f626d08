#include "yoke/cli/secret_input.h"

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "yoke/base/error.h"
#include "yoke/cli/typed_line.h"

namespace yoke {
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

}  // namespace yoke
