#include "yoke/cli/standard_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {

std::string read_standard_input(Bytes most) {
  const UniqueFd input(dup(STDIN_FILENO));
  if (!input) throw system_error(errno, "cannot read standard input");
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    wait_for_input(input);
    const std::size_t count = read_some(input, buffer, sizeof buffer, "standard input");
    if (count == 0) break;
    text.append(buffer, count);
    if (std::ssize(text) > most.value) {
      throw Error(ErrorCode::kInvalid, fmt::format("standard input is larger than {}", to_string(most)));
    }
  }
  return text;
}

}  // namespace yoke
