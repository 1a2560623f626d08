#include "yoke/launch/modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

// A shell that is no login shell has no 'module': Environment Modules and Lmod define it in these files.
constexpr std::string_view kFindModules =
    "if ! type module >/dev/null 2>&1; then\n"
    "  for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/modules/init/bash "
    "/usr/share/lmod/lmod/init/bash; do\n"
    "    # shellcheck source=/dev/null\n"
    "    if [ -r \"$file\" ]; then . \"$file\"; break; fi\n"
    "  done\n"
    "fi\n";

bool is_name_letter(char c) {
  constexpr std::string_view kOthers = "._+-/@=:";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> parse_modules(std::string_view text) {
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), ',', ' ');
  std::vector<std::string> names;
  for (const std::string& name : split(blanks, ' ')) {
    if (name.empty()) continue;
    if (name.front() == '-' || !std::all_of(name.begin(), name.end(), is_name_letter)) {
      throw Error(ErrorCode::kUsage, fmt::format("--modules: '{}' is no name of a module", printable(name, 60)),
                  "--modules 'cuda/12.4 nccl/2.20'");
    }
    names.push_back(name);
  }
  return names;
}

std::string modules_text(const std::vector<std::string>& modules) {
  if (modules.empty()) return "";
  return fmt::format(
      "set +eu  # the functions of modules use variables that are not set\n{}"
      "# shellcheck disable=SC2043\n"
      "for name in {}; do\n"
      "  module load \"$name\"\n"
      "  if ! module -t list 2>&1 | grep -qF -- \"$name\"; then\n"
      "    echo \"the module $name cannot be loaded on $(hostname)\" >&2\n"
      "    exit 2\n"
      "  fi\n"
      "done\nset -eu\n",
      kFindModules, fmt::join(modules, " "));
}

std::string modules_check_text(const std::vector<std::string>& modules) {
  return fmt::format(
      "{}type module >/dev/null 2>&1 || exit 3\nstatus=0\n"
      "for name in {}; do\n"
      "  module load \"$name\" >/dev/null 2>&1\n"
      "  module -t list 2>&1 | grep -qF -- \"$name\" || {{ echo \"$name\"; status=1; }}\n"
      "done\nexit $status\n",
      kFindModules, fmt::join(modules, " "));
}

}  // namespace yoke::launch
