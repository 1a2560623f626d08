#include "yoke/remote/remote_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke {
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

// $1 path. A first line "MODE SIZE SHA-256" (or "-" for what cannot be told), then the content.
constexpr std::string_view kSendScript = R"sh(
[ ! -d "$1" ] || { echo "$1: Is a directory" >&2; exit 1; }
exec < "$1" || exit 1
mode=$(stat -L -c %a "$1" 2>/dev/null) || mode=-
size=$(wc -c < "$1") || exit 1
hash=$(sha256sum < "$1" 2>/dev/null) || hash=-
echo "$mode" $size "${hash%% *}"
cat
)sh";

// A leading dash would be an option to the tools.
std::string safe_path(const std::string& path) { return path.starts_with('-') ? "./" + path : path; }

Command script(std::string_view text, std::vector<std::string> arguments, Seconds timeout) {
  Command command{.argv = {"sh", "-c", std::string(text), "sh"}, .environment = {{"LC_ALL", "C"}}, .timeout = timeout};
  for (std::string& argument : arguments) command.argv.push_back(std::move(argument));
  return command;
}

struct Header {
  std::optional<unsigned> mode;
  std::int64_t size = 0;
  std::string hash;
};

template <class Number>
std::optional<Number> parse_number(const std::string& text, int base) {
  Number number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Header> parse_header(const std::string& line) {
  const std::vector<std::string> words = split(line, ' ');
  if (words.size() != 3) return std::nullopt;
  const auto size = parse_number<std::int64_t>(words[1], 10);
  if (!size) return std::nullopt;
  return Header{parse_number<unsigned>(words[0], 8), *size, words[2]};
}

// Removes the file unless it was renamed away.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& beside) : path_(beside.native() + "." + random_token_hex(8)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The header, then the content into `fd`. What the far side complains about goes to `complaints`.
Header receive_file(RemoteProcess& process, const UniqueFd& fd, const fs::path& name, Deadline deadline,
                    std::string& complaints) {
  std::optional<Header> header;
  while (!header) {
    const auto line = process.read_line(deadline);
    if (!line) break;
    if (line->stream == OutputStream::kOut) {
      header = parse_header(line->text);
    } else {
      complaints += line->text + "\n";
    }
  }
  while (header && !process.at_end(OutputStream::kOut)) {
    const std::string piece = process.read_bytes(OutputStream::kOut, 1 << 20, deadline);
    if (piece.empty() && deadline.expired()) break;
    write_all(fd, piece, name);
  }
  return header.value_or(Header{});
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

void RemoteShell::copy_from(const std::string& remote, const fs::path& local, const CopyOptions& options) {
  const std::string what = fmt::format("cannot copy {} to {} here", printable(remote), local.native());
  const Deadline deadline = Deadline::after(options.timeout);
  const TemporaryFile temporary(local);
  const UniqueFd fd = open_file(temporary.path(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  const std::unique_ptr<RemoteProcess> process = start(script(kSendScript, {safe_path(remote)}, options.timeout));
  std::string complaints;
  const Header header = receive_file(*process, fd, local, deadline, complaints);
  std::optional<Outcome> outcome = process->wait(deadline);
  if (!outcome) outcome = Outcome{.exit_status = 1, .timed_out = true};
  outcome->err = complaints + outcome->err;
  if (!outcome->ok()) throw remote_tool_error(host(), what, *outcome);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) throw system_error(errno, what);
  const bool same =
      status.st_size == header.size && (header.hash == "-" || header.hash == sha256_file_hex(temporary.path()));
  if (!same) {
    throw Error(ErrorCode::kConflict, fmt::format("{}: what arrived differs from what {} has", what, host().name),
                "does something write the file at the same time?");
  }
  if (fchmod(fd.get(), options.mode.value_or(header.mode.value_or(0644))) != 0 || fsync(fd.get()) != 0 ||
      rename(temporary.path().c_str(), local.c_str()) != 0) {
    throw system_error(errno, what);
  }
}

}  // namespace yoke
