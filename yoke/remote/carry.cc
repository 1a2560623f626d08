#include "yoke/remote/carry.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"
#include "yoke/remote/ssh_errors.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

// $1 SHA-256, $2 size, $3 machine. Prints the machine, the path, "whole" or "missing", and the free KiB. A used version
// is touched, which keeps it from being deleted.
constexpr std::string_view kLookScript = R"sh(
cache=${XDG_CACHE_HOME:-}
case $cache in /*) ;; *) cache=$HOME/.cache ;; esac
file=$cache/yoke/$1/yoke
uname -m
echo "$file"
whole=missing
if [ -f "$file" ] && [ -x "$file" ]; then
  if hash=$(sha256sum < "$file" 2>/dev/null); then
    [ "${hash%% *}" = "$1" ] && whole=whole
  else
    size=$(wc -c < "$file") && [ "$size" -eq "$2" ] && whole=whole
  fi
fi
echo $whole
if [ $whole = whole ]; then touch -c "$file" 2>/dev/null; exit 0; fi
[ "$(uname -m)" = "$3" ] || exit 0
mkdir -p "$cache/yoke/$1" || exit 1
find "$cache/yoke" -name yoke -type f -mtime +30 -exec rm -f {} + 2>/dev/null
find "$cache/yoke" -mindepth 1 -type d -mtime +1 -exec rmdir {} + 2>/dev/null  # of those that are empty
df -Pk "$cache/yoke" 2>/dev/null | { while read -r _ _ _ free _; do last=$free; done; echo "$last"; }
)sh";

struct Look {
  std::string machine, path;
  bool whole = false;
  std::optional<Bytes> free;
};

std::optional<Look> parse_look(std::string_view out) {
  const std::vector<std::string> lines = split(out, '\n');
  if (lines.size() < 4 || !lines[1].starts_with('/')) return std::nullopt;
  Look look{lines[0], lines[1], lines[2] == "whole", std::nullopt};
  const std::string& free = lines[3];
  const bool digits = !free.empty() && free.find_first_not_of("0123456789") == std::string::npos && free.size() < 16;
  if (digits) look.free = Bytes{std::stoll(free) * 1024};
  return look;
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

std::string carry_program(RemoteShell& shell, const fs::path& program, const CarryOptions& options) {
  const std::string machine = program_machine(program);
  const std::string hash = sha256_file_hex(program);
  const auto size = static_cast<std::int64_t>(fs::file_size(program));
  const Outcome outcome =
      shell.run({.argv = {"sh", "-c", std::string(kLookScript), "sh", hash, std::to_string(size), machine},
                 .environment = {{"LC_ALL", "C"}},
                 .timeout = options.timeout});
  if (!outcome.ok()) throw remote_tool_error(shell.host(), "cannot look for yoke", outcome);
  const std::optional<Look> look = parse_look(outcome.out);
  if (!look) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} answered what makes no sense: {}", describe(shell.host()), printable(outcome.out)));
  }
  if (look->whole) return look->path;
  if (look->machine != machine) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("this yoke is built for {}, but {} is {}", machine, describe(shell.host()),
                            printable(look->machine)),
                "build yoke for that machine and install it there, or start from a machine of its kind");
  }
  if (look->free && look->free->value < size) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("the disk of {} is full: yoke needs {}, and {} has {}", describe(shell.host()),
                            to_string(Bytes{size}), printable(look->path), to_string(*look->free)),
                "free some space there");
  }
  shell.copy_to(program, look->path, {.timeout = options.timeout, .mode = 0755});
  return look->path;
}

}  // namespace yoke
