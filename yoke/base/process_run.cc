// Programs that are run to their end: run() and what is said about an Outcome.
#include "yoke/base/process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

// The last that says something: programs frame their messages with rows of dashes.
std::string last_line(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0; };
  const auto last_of = [](std::string_view lines) { return lines.substr(lines.rfind('\n') + 1); };  // npos + 1 is 0
  text = trim(text);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = last_of(rest);
    if (std::any_of(line.begin(), line.end(), is_letter)) return printable(line);
    rest = trim(rest.substr(0, rest.size() - line.size()));
  }
  return printable(last_of(text));
}

}  // namespace

std::string to_string(const Command& command) { return printable(fmt::format("{}", fmt::join(command.argv, " "))); }

bool is_installed(std::string_view program) {
  for (const char* folder : {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}) {
    if (access(fmt::format("{}/{}", folder, program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string Outcome::describe() const {
  if (timed_out) return "took too long and was ended";
  const std::string how =
      signal ? fmt::format("was ended by signal {}", *signal) : fmt::format("exited with status {}", exit_status);
  const std::string why = last_line(err);
  return why.empty() ? how : fmt::format("{}: {}", how, why);
}

Outcome run(const Command& command) {
  Process process(command);
  const Deadline deadline = Deadline::after(command.timeout);
  const Instant start = real_clock().now();
  if (std::optional<Outcome> outcome = process.wait(deadline)) {
    log(LogLevel::kDebug, "process {} {} after {}", process.pid(), outcome->describe(),
        to_string(to_seconds(real_clock().now() - start)));
    return *std::move(outcome);
  }
  process.kill_tree();
  Outcome outcome = process.wait(Deadline::never()).value();
  outcome.timed_out = true;
  return outcome;
}

Outcome run_or_throw(const Command& command) {
  Outcome outcome = run(command);
  if (outcome.timed_out) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("'{}' did not end within {}", to_string(command), to_string(command.timeout)));
  }
  if (!outcome.ok()) throw Error(ErrorCode::kInvalid, fmt::format("'{}' {}", to_string(command), outcome.describe()));
  return outcome;
}

}  // namespace yoke
