#include "yoke/cli/typed_line.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/interrupt.h"

namespace yoke {

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

}  // namespace yoke
