// Programs that are run to their end: run() and what is said about an Outcome.
#include "yoke/base/process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t newline = text.rfind('\n');
  return printable(newline == std::string_view::npos ? text : text.substr(newline + 1));
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
  if (std::optional<Outcome> outcome = process.wait(deadline)) return *std::move(outcome);
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
