#include "yoke/remote/ssh_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/text.h"
#include "yoke/remote/quote.h"

namespace yoke::remote {
namespace {

constexpr std::size_t kMaxNoise = 64 << 10;
// A process number, an exit status, or "program" and "folder".
constexpr std::size_t kMaxMarkText = 20;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMaxMarkText && text.find_first_not_of("0123456789") == text.npos;
}

// How much of the end of `text` could be the beginning of `mark`.
std::size_t held_back(std::string_view text, std::string_view mark) {
  for (std::size_t size = std::min(text.size(), mark.size()); size > 0; --size) {
    if (mark.starts_with(text.substr(text.size() - size))) return size;
  }
  return 0;
}

}  // namespace

FrameTokens make_frame_tokens() { return {random_token_hex(16), random_token_hex(16)}; }

std::string framed_command(const Command& command, const FrameTokens& tokens) {
  if (command.argv.empty() || command.argv[0].empty() || command.argv[0].starts_with('-')) {
    throw Error(ErrorCode::kInvalid, fmt::format("'{}' cannot be run by a shell", to_string(command)));
  }
  const std::string rails = tokens.mark.substr(0, 8) + " " + tokens.mark.substr(8);
  const std::string end_mark = fmt::format("printf '\\036%s%s<%s\\n' {}", rails);
  std::string script =
      fmt::format("printf '\\036%s%s>%s\\n' {} $$; printf '\\036%s%s>%s\\n' {} $$ >&2\n", rails, rails);
  script += fmt::format("export {0}=\"${{{0}:+${0}:}}\"{1}\n", kProcessTokenVariable, tokens.process);
  for (const auto& [name, value] : command.environment) {
    if (!is_variable_name(name)) {
      throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no name of a variable", printable(name)));
    }
    script += fmt::format("export {}={}\n", name, shell_quote(value));
  }
  if (command.folder) {
    std::string folder = command.folder->native();
    if (folder.starts_with('-')) folder = "./" + folder;
    script += fmt::format("cd {} 2>/dev/null || {{ {} folder >&2; exit 1; }}\n", shell_quote(folder), end_mark);
  }
  const std::string program = shell_quote(command.argv[0]);
  script += fmt::format("command -v {} >/dev/null 2>&1 || {{ {} program >&2; exit 127; }}\n", program, end_mark);
  // exec in a subshell: the program and not the shell's own echo or kill, and we see its status.
  script += fmt::format("(exec {})\nstatus=$?\n{} $status >&2\nexit $status\n", shell_join(command.argv), end_mark);
  // exec: nothing that the startup files left for the shell's exit comes after.
  return "exec /bin/sh -c " + shell_quote(script);
}

std::string ending_command(std::string_view process_number, const FrameTokens& tokens) {
  // The session's first shell leads a process group; what left it is found by its environment, which a zombie has no
  // more. SIGTERM once, then SIGKILL as often as something is left. The number is the far side's word: 0 and 1 would
  // mean the group of this shell and all processes of the user.
  int group = 0;
  std::from_chars(process_number.data(), process_number.data() + process_number.size(), group);
  const auto kill_group = [&](std::string_view signal) {
    return group > 1 ? fmt::format("kill -{} -{} 2>/dev/null", signal, group) : "";
  };
  const std::string script = fmt::format(R"sh(
{0}
for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  found=$(grep -l {2} /proc/[0-9]*/environ 2>/dev/null)
  [ -n "$found" ] || break
  signal=0; [ $turn = 1 ] && signal=TERM; [ $turn -gt 10 ] && signal=KILL
  for file in $found; do number=${{file#/proc/}}; kill -$signal "${{number%/environ}}" 2>/dev/null; done
  sleep 0.1
done
{1}
)sh",
                                         kill_group("TERM"), kill_group("KILL"), tokens.process);
  return "exec /bin/sh -c " + shell_quote(script);
}

bool FrameReader::find_begin() {
  const std::size_t at = held_.find(mark_ + ">");
  const std::size_t end = at == std::string::npos ? at : held_.find('\n', at);
  if (end == std::string::npos) {
    if (held_.size() > kMaxNoise) held_.erase(0, held_.size() - kMaxNoise / 2);
    return false;
  }
  const std::size_t number = at + mark_.size() + 1;
  process_number_ = held_.substr(number, end - number);
  if (!is_number(process_number_)) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("the login shell answered '{}' where a process number belongs", printable(process_number_, 60)),
        "is another program in the place of /bin/sh over there?");
  }
  held_.erase(0, end + 1);
  noise_size_ = 0;
  return began_ = true;
}

std::string FrameReader::take(std::string_view data) {
  if (end_ != End::kNone || broken_) return {};
  if (!began_) noise_size_ += data.size();
  held_ += data;
  if (!began_ && !find_begin()) return {};
  if (ends_ == Ends::kWithStream) return std::exchange(held_, {});
  const std::size_t at = held_.find(mark_ + "<");
  if (at != std::string::npos) {
    std::string written = held_.substr(0, at);
    held_.erase(0, at);
    const std::size_t text_at = mark_.size() + 1;
    const std::size_t newline = held_.find('\n', text_at);
    if (newline != std::string::npos) read_end(std::string_view(held_).substr(text_at, newline - text_at));
    broken_ = end_ == End::kNone && (newline != std::string::npos || held_.size() > text_at + kMaxMarkText);
    if (broken_) held_.clear();
    return written;
  }
  const std::size_t written_size = held_.size() - held_back(held_, mark_ + "<");
  std::string written = held_.substr(0, written_size);
  held_.erase(0, written_size);
  return written;
}

void FrameReader::read_end(std::string_view text) {
  if (text == "program") {
    end_ = End::kNoProgram;
  } else if (text == "folder") {
    end_ = End::kNoFolder;
  } else if (std::from_chars(text.data(), text.data() + text.size(), status_).ec == std::errc()) {
    end_ = End::kStatus;
  }
}

std::string FrameReader::finish() {
  if (!began_ || end_ != End::kNone) return {};
  return std::exchange(held_, {});
}

}  // namespace yoke::remote
