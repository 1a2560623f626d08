#include "yoke/gameday/phase_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/progress.h"
#include "yoke/base/result.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/gameday/orderly_end.h"
#include "yoke/remote/quote.h"

namespace yoke::gameday {
namespace {

using namespace literals;

// As a person would type it: words that need no quotes without them, others whole in single quotes where that will do.
std::string as_typed(const std::vector<std::string>& arguments) {
  constexpr std::size_t kShown = 200;  // of a prompt or a script
  std::string line = "yoke";
  for (const std::string& whole : arguments) {
    const std::string word = whole.size() > kShown ? whole.substr(0, kShown / 4) + "…" : whole;
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("-_=./,:+").find(c) != std::string_view::npos;
    });
    const bool quotable = word.find_first_of("'\\!") == std::string::npos;
    line += " " + (plain ? word : quotable ? "'" + word + "'" : remote::shell_quote(word));
  }
  return line;
}

// With --json a failed command tells its error on standard output: the message, and the hint.
std::string error_of(const Outcome& outcome) {
  const auto answer = try_to([&] { return parse_json(outcome.out, "the answer"); });
  const Document* const error = answer ? answer->find("error") : nullptr;
  const Document* const message = error ? error->find("message") : nullptr;
  if (!message) return outcome.describe();
  const Document* const hint = error->find("hint");
  return hint && !hint->text.empty() ? fmt::format("{}; hint: {}", message->text, hint->text) : message->text;
}

}  // namespace

PhaseRun::PhaseRun(const Environment& environment, PhaseResult result, Write write)
    : environment_(environment), result_(std::move(result)), write_(std::move(write)), start_(real_clock().now()) {}

Outcome PhaseRun::run(const std::vector<std::string>& arguments, const RunOptions& options) {
  throw_if_interrupted();  // a Process knows only of a Ctrl-C since its own start, and one may come between two
  const std::string line = as_typed(arguments);
  print("$ " + line);
  const Instant start = real_clock().now();
  Command command{
      .argv = {environment_.options().program}, .environment = {{"NO_COLOR", "1"}}, .folder = environment_.folder()};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  Process process(std::move(command));
  const std::size_t place = result_.commands.size();  // of this one: it may run others while it lasts
  result_.commands.push_back({.line = line, .seconds = {}});
  Outcome outcome;
  try {
    outcome = wait_for(process, line, options);
  } catch (...) {
    end_orderly(process);
    throw;
  }
  result_.commands[place].seconds = to_seconds(real_clock().now() - start);
  result_.commands[place].exit_status = outcome.exit_status;
  return outcome;
}

Outcome PhaseRun::wait_for(Process& process, const std::string& line, const RunOptions& options) {
  const Deadline deadline = Deadline::after(options.limit);
  Progress progress(printable(line, 60), 0);
  std::string out;
  std::string err;
  while (!process.at_end()) {
    throw_if_interrupted();
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("'{}' did not end within {}", line, yoke::to_string(options.limit)));
    }
    process.poll_output(Deadline::after(std::min(deadline.remaining(), 200_ms)));
    progress.update(0, result_.name);
    err += process.read_bytes(OutputStream::kErr, std::string::npos, Deadline::after({}));
    const std::string more = process.read_bytes(OutputStream::kOut, std::string::npos, Deadline::after({}));
    out += more;
    if (!more.empty() && options.on_output) options.on_output(process.pid(), out);
  }
  Outcome outcome = process.wait(Deadline::never()).value();
  outcome.out = std::move(out);
  outcome.err = std::move(err);
  return outcome;
}

Document PhaseRun::run_json(std::vector<std::string> arguments, const RunOptions& options) {
  arguments.emplace_back("--json");
  const Outcome outcome = run(arguments, options);
  if (std::find(options.answers.begin(), options.answers.end(), outcome.exit_status) == options.answers.end())
    throw Error(ErrorCode::kInvalid, fmt::format("'{}': {}", as_typed(arguments), error_of(outcome)));
  return parse_json(outcome.out, as_typed(arguments));
}

void PhaseRun::expect(bool holds, std::string what) {
  print(fmt::format("{} {}", holds ? "ok  " : "FAIL", what));
  if (holds) {
    result_.held.push_back(std::move(what));
  } else {
    fail(fmt::format("expected: {}", what));
  }
}

void PhaseRun::fail(std::string why) {
  if (result_.verdict != Verdict::kFail) result_.why = std::move(why);
  result_.verdict = Verdict::kFail;
}

void PhaseRun::figure(Figure figure) {
  print(to_string(figure));
  result_.figures.push_back(std::move(figure));
}

void PhaseRun::print(std::string_view text) {
  if (!write_) return;
  // A command that is still running may have drawn its progress on the line where this goes.
  if (const ProgressOptions progress = default_progress(); progress.style == ProgressStyle::kTerminal) {
    progress.write("\r\x1b[K");
  }
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) write_(fmt::format("   {}\n", line));
  }
}

void PhaseRun::show(const report::Table& table) {
  report::TableOptions options = report::for_output(100);
  options.width -= 3;  // say() indents
  print(render_text(table, options));
  block(table);
}

PhaseResult PhaseRun::end() {
  result_.seconds = to_seconds(real_clock().now() - start_);
  return std::move(result_);
}

}  // namespace yoke::gameday
