#include "yoke/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace yoke {
namespace {

constexpr std::size_t kUsualColumns = 80;
constexpr std::size_t kMinColumns = 20;  // a window that somebody made tiny: below this nothing can be laid out

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::optional<std::size_t> terminal_columns(int fd) {
  if (isatty(fd) == 0) return std::nullopt;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return std::max<std::size_t>(size.ws_col, kMinColumns);
}

bool takes_escapes(int fd) {
  const std::string_view term = variable("TERM");
  return isatty(fd) != 0 && !term.empty() && term != "dumb";
}

bool takes_colour(int fd) { return takes_escapes(fd) && variable("NO_COLOR").empty(); }

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (value.empty()) continue;
    for (const char* codeset : {"UTF-8", "utf8", "utf-8", "UTF8"}) {
      if (value.find(codeset) != std::string_view::npos) return true;
    }
    return false;
  }
  return false;
}

std::size_t output_width(std::size_t elsewhere) { return terminal_columns(STDOUT_FILENO).value_or(elsewhere); }

}  // namespace yoke
