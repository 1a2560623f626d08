#include "yoke/remote/remote_shell.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke::remote {
namespace fs = std::filesystem;
namespace {

// $1 path, $2 mode, $3 size, $4 SHA-256, $5 a suffix that no other copy has. POSIX, but for sha256sum and `sync FILE`,
// both of which may be missing.
constexpr std::string_view kReceiveScript = R"sh(
[ ! -d "$1" ] || { echo "$1: Is a directory" >&2; exit 1; }
temporary=$1.$5
trap 'rm -f "$temporary"' EXIT
trap 'exit 1' HUP INT PIPE TERM
cat > "$temporary" || exit 1
size=$(wc -c < "$temporary") || exit 1
[ "$size" -eq "$3" ] || { echo "only $size of $3 bytes arrived" >&2; exit 1; }
if hash=$(sha256sum < "$temporary" 2>/dev/null); then
  [ "${hash%% *}" = "$4" ] || { echo "what arrived differs from what was sent" >&2; exit 1; }
fi
chmod "$2" "$temporary" || exit 1
sync "$temporary" 2>/dev/null
mv -f "$temporary" "$1" || exit 1
)sh";

// A leading dash would be an option to the tools.
std::string safe_path(const std::string& path) { return path.starts_with('-') ? "./" + path : path; }

Command script(std::string_view text, std::vector<std::string> arguments, Seconds timeout) {
  Command command{.argv = {"sh", "-c", std::string(text), "sh"}, .environment = {{"LC_ALL", "C"}}, .timeout = timeout};
  for (std::string& argument : arguments) command.argv.push_back(std::move(argument));
  return command;
}

}  // namespace

Error remote_tool_error(const Host& host, std::string_view what, const Outcome& outcome) {
  struct Words {
    std::string_view text;
    ErrorCode code;
    std::string_view hint;
  };
  static constexpr Words kWords[] = {
      {"No space left on device", ErrorCode::kExhausted, "free some space there"},
      {"Disk quota exceeded", ErrorCode::kExhausted, "free some space there"},
      {"Permission denied", ErrorCode::kPermission, "may this user write there?"},
      {"Read-only file system", ErrorCode::kPermission, "that volume is mounted read-only"},
      {"No such file or directory", ErrorCode::kNotFound, ""},
      {"No such file", ErrorCode::kNotFound, ""},
      {"nonexistent", ErrorCode::kNotFound, ""},
      {"Is a directory", ErrorCode::kInvalid, "name a file, not a folder"},
      {"Not a directory", ErrorCode::kNotFound, ""},
      {"bytes arrived", ErrorCode::kUnavailable, "try again"},
  };
  ErrorCode code = outcome.timed_out ? ErrorCode::kTimeout : ErrorCode::kInvalid;
  std::string_view hint;
  for (const Words& words : kWords) {
    if (outcome.err.find(words.text) == std::string::npos) continue;
    code = words.code;
    hint = words.hint;
    break;
  }
  return Error(code, fmt::format("{} on {}: it {}", what, host.name, outcome.describe()), std::string(hint));
}

void RemoteShell::copy_to(const fs::path& local, const std::string& remote, const CopyOptions& options) {
  struct stat status {};
  if (stat(local.c_str(), &status) != 0) throw system_error(errno, fmt::format("cannot read {}", local.native()));
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::kInvalid, fmt::format("{} is no file", local.native()));
  const std::string hash = sha256_file_hex(local);
  const unsigned mode = options.mode.value_or(status.st_mode & 07777U);
  Command command = script(kReceiveScript,
                           {safe_path(remote), fmt::format("{:o}", mode), std::to_string(status.st_size), hash,
                            "yoke-" + random_token_hex(8)},
                           options.timeout);
  command.input_file = local;
  const Outcome outcome = run(command);
  if (!outcome.ok()) {
    throw remote_tool_error(host(), fmt::format("cannot copy {} to {}", local.native(), printable(remote)), outcome);
  }
}

}  // namespace yoke::remote
