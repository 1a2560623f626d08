#include "yoke/remote/deploy.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/remote/program_hash.h"
#include "yoke/remote/ssh_errors.h"

namespace yoke::remote {
namespace fs = std::filesystem;
namespace {

// $1 SHA-256, $2 size, $3 machine, $4 who may start it at once: "nobody", "anybody", "root"; then the program's words.
// Prints a NodeLook, a line each, and "end". A used version is touched, which keeps it from being deleted. That a copy
// is whole is remembered beside it, with its place on the disk, size and change time, which the kernel sets at every
// change: the hash takes a fifth of the time of a short command. The tools speak English here; the program that is
// started gets the user's own language.
constexpr std::string_view kLookScript = R"sh(
cache=${XDG_CACHE_HOME:-}
case $cache in /*) ;; *) cache=$HOME/.cache ;; esac
file=$cache/yoke/$1/yoke
uid=$(id -u)
(
LC_ALL=C
export LC_ALL
uname -m
uname -n
echo "$uid"
id -un 2>/dev/null || echo "$uid"
address=${SSH_CONNECTION:-}
address=${address#* }
address=${address#* }
echo "${address%% *}"
echo "$file"
whole=missing
look() { stat -c '%d %i %s %z' "$file" 2>/dev/null; }
if [ -f "$file" ] && [ -x "$file" ]; then
  seen=
  read -r seen 2>/dev/null < "$file.whole"
  now=$(look)
  if [ -n "$now" ] && [ "$now" = "$seen" ]; then
    whole=whole
    touch -c "$file" 2>/dev/null
    { look > "$file.whole"; } 2>/dev/null
  elif touch -c "$file" 2>/dev/null; now=$(look); hash=$(sha256sum < "$file" 2>/dev/null); then
    if [ "${hash%% *}" = "$1" ]; then
      whole=whole
      [ -z "$now" ] || { echo "$now" > "$file.whole"; } 2>/dev/null
    fi
  else
    size=$(wc -c < "$file") && [ "$size" -eq "$2" ] && whole=whole
  fi
fi
echo $whole
[ $whole != whole ] || exit 0
[ "$(uname -m)" = "$3" ] || exit 10
mkdir -p "$cache/yoke/$1" || exit 1
find "$cache/yoke" \( -name yoke -o -name yoke.whole \) -type f -mtime +30 -exec rm -f {} + 2>/dev/null
find "$cache/yoke" -mindepth 1 -type d -mtime +1 -exec rmdir {} + 2>/dev/null  # of those that are empty
df -Pk "$cache/yoke" 2>/dev/null | { while read -r _ _ _ free _; do last=$free; done; echo "$last"; }
exit 10
)
status=$?
case $status in 0|10) echo end ;; *) exit $status ;; esac
[ $status = 0 ] || exit 0
case $4 in anybody) ;; root) [ "$uid" = 0 ] || exit 0 ;; *) exit 0 ;; esac
shift 4
exec "$file" "$@"
)sh";

constexpr std::string_view kLookEnd = "end";

bool parse_look(const std::vector<std::string>& lines, NodeLook& look) {
  if (lines.size() < 7 || !lines[5].starts_with('/')) return false;
  look = {.machine = lines[0],
          .hostname = lines[1],
          .user = lines[3],
          .is_root = lines[2] == "0",
          .reached_at = lines[4].substr(0, lines[4].find('%')),
          .path = lines[5],
          .whole = lines[6] == "whole"};
  const std::string free = lines.size() > 7 ? lines[7] : "";
  const bool digits = !free.empty() && free.find_first_not_of("0123456789") == std::string::npos && free.size() < 16;
  if (digits) look.free = Bytes{std::stoll(free) * 1024};
  return true;
}

std::string_view word_of(StartAs as) {
  switch (as) {
    case StartAs::kAnybody:
      return "anybody";
    case StartAs::kRootOnly:
      return "root";
    case StartAs::kNobody:
      break;
  }
  return "nobody";
}

Command inspect_command(const ProgramFile& program, const CarriedStart& start) {
  Command command{.argv = {"sh", "-c", std::string(kLookScript), "sh", program.hash(), std::to_string(program.size()),
                           program.machine(), std::string(word_of(start.as))}};
  command.argv.insert(command.argv.end(), start.words.begin(), start.words.end());
  if (start.as != StartAs::kNobody) command.input_mode = InputMode::kPipe;
  return command;
}

// Reads the look's lines up to its end.
void read_look(RemoteProcess& process, const Host& host, Seconds limit, NodeLook& look) {
  const Deadline deadline = Deadline::after(limit);
  std::vector<std::string> lines;
  std::string complaints;
  while (const auto line = process.read_line(deadline)) {
    if (line->stream == OutputStream::kErr) {
      complaints += line->text + "\n";
    } else if (line->text == kLookEnd && lines.size() >= 7) {
      if (parse_look(lines, look)) return;
      break;
    } else {
      lines.push_back(line->text);
      look.machine = lines.front();
    }
  }
  if (process.at_end(OutputStream::kOut) && lines.size() < 8) {
    Outcome outcome = process.wait(Deadline::after({5})).value_or(Outcome{.exit_status = 1});
    outcome.err = complaints + outcome.err;
    if (!outcome.ok()) throw remote_tool_error(host, "cannot look for yoke", outcome);
  } else if (deadline.expired()) {
    throw remote_tool_error(host, "cannot look for yoke", {.exit_status = 1, .err = complaints, .timed_out = true});
  }
  throw Error(ErrorCode::kInvalid, fmt::format("{} answered what makes no sense: {}", describe(host),
                                               printable(fmt::format("{}", fmt::join(lines, "\n")))));
}

}  // namespace

std::string program_machine(const fs::path& program) {
  const UniqueFd fd = open_file(program, O_RDONLY);
  std::array<char, EI_NIDENT + 4> head{};  // e_ident, e_type, e_machine: the same in 32 and 64 bits
  const std::size_t count = read_some(fd, head.data(), head.size(), program);
  if (count < head.size() || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is no program", program.native()));
  }
  const bool big_endian = head[EI_DATA] == ELFDATA2MSB;
  const auto low = static_cast<unsigned char>(head[EI_NIDENT + (big_endian ? 3 : 2)]);
  const auto high = static_cast<unsigned char>(head[EI_NIDENT + (big_endian ? 2 : 3)]);
  const unsigned machine = low | static_cast<unsigned>(high) << 8U;
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv64";
    case EM_S390:
      return "s390x";
    case EM_PPC64:
      return big_endian ? "ppc64" : "ppc64le";
    default:
      return fmt::format("ELF machine {}", machine);
  }
}

const ProgramFile::Known& ProgramFile::known() const {
  const std::lock_guard lock(mutex_);
  if (!known_) {
    const auto folder = try_to([] { return user_runtime_dir(); });
    known_ = {program_machine(path_), folder ? program_hash(path_, *folder / "program-hash") : sha256_file_hex(path_),
              static_cast<std::int64_t>(fs::file_size(path_))};
  }
  return *known_;
}

std::unique_ptr<RemoteProcess> start_carried(RemoteShell& shell, const ProgramFile& program, const CarriedStart& start,
                                             NodeLook& look) {
  std::unique_ptr<RemoteProcess> process = shell.start(inspect_command(program, start));
  read_look(*process, shell.host(), start.inspect_limit, look);
  const bool starts = look.whole && (start.as == StartAs::kAnybody || (start.as == StartAs::kRootOnly && look.is_root));
  if (starts) return process;
  process->close_input();
  process->wait(Deadline::after({5}));  // so that it need not be ended
  return nullptr;
}

NodeLook find_deployed_program(RemoteShell& shell, const ProgramFile& program) {
  NodeLook look;
  start_carried(shell, program, {.as = StartAs::kNobody}, look);
  return look;
}

void copy_program(RemoteShell& shell, const ProgramFile& program, const NodeLook& look, const CarryOptions& options) {
  if (look.machine != program.machine()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("this yoke is built for {}, but {} is {}", program.machine(), describe(shell.host()),
                            printable(look.machine)),
                "build yoke for that machine and install it there, or start from a machine of its kind");
  }
  if (look.free && look.free->value < program.size()) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("the disk of {} is full: yoke needs {}, and {} has {}", describe(shell.host()),
                            to_string(Bytes{program.size()}), printable(look.path), to_string(*look.free)),
                "free some space there");
  }
  shell.copy_to(program.path(), look.path, {.timeout = options.timeout, .mode = 0755});
}

std::string deploy_program(RemoteShell& shell, const fs::path& program, const CarryOptions& options) {
  const ProgramFile file(program);
  const NodeLook look = find_deployed_program(shell, file);
  if (!look.whole) copy_program(shell, file, look, options);
  return look.path;
}

}  // namespace yoke::remote
