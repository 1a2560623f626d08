#include "yoke/gameday/gameday.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/base/run_at_terminal.h"
#include "yoke/gameday/day_watch.h"

namespace yoke::gameday {
namespace {

std::optional<std::string> why_skipped(const Phase& phase, const Environment& environment,
                                       const std::vector<PhaseResult>& played) {
  for (const PhaseResult& before : played) {
    const bool needed = std::find(phase.needs.begin(), phase.needs.end(), before.name) != phase.needs.end();
    if (needed && before.verdict == Verdict::kFail) return fmt::format("phase {} failed", before.name);
  }
  return phase.why_not(environment);
}

std::string failure_text(const Error& error) {
  return error.hint().empty() ? error.message() : fmt::format("{}; hint: {}", error.message(), error.hint());
}

std::string ending_of(const PhaseResult& result) {
  const std::string why = result.why.empty() ? "" : ": " + result.why;
  if (result.verdict == Verdict::kSkipped) return fmt::format("   skipped{}\n\n", why);
  return fmt::format("   {} in {}{}\n\n", to_string(result.verdict), yoke::to_string(result.seconds), why);
}

PhaseResult play(const Phase& phase, Environment& environment, const std::vector<PhaseResult>& played,
                 const PhaseRun::Write& write) {
  PhaseResult result{.name = std::string(phase.name), .title = std::string(phase.title)};
  if (auto why = why_skipped(phase, environment, played)) {
    result.verdict = Verdict::kSkipped;
    result.why = *std::move(why);
    return result;
  }
  PhaseRun phase_run(environment, std::move(result), write);
  try {
    phase.play(environment, phase_run);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    phase_run.fail(failure_text(error));
  }
  return phase_run.end();
}

// The finale needs a model that runs; where that phase did not come so far there is nothing to talk to.
void chat(const Environment& environment, const PhaseRun::Write& write) {
  if (!environment.answer) {
    write("No conversation: phase model has not given an answer.\n\n");
    return;
  }
  std::vector<std::string> words = conversation(environment);
  write(fmt::format("$ yoke {}     (Ctrl-D ends it, and the clean-up follows)\n", fmt::join(words, " ")));
  words.insert(words.begin(), environment.options().program);
  run_at_terminal({.argv = words, .folder = environment.folder(), .ctrl_c = TerminalCommand::CtrlC::kProgram});
}

}  // namespace

GamedayResult run_gameday(const GamedayOptions& options) {
  const PhaseRun::Write write = options.write ? options.write : [](std::string_view) {};
  const Instant start = real_clock().now();
  Environment environment(options.environment);
  GamedayResult day{.place = environment.describe(), .started = utc_now()};
  write(fmt::format("Game day: {}\nCommands run in {}\n\n", day.place, environment.folder().native()));
  int number = 0;
  DayWatch watch;
  for (const Phase* phase : options.phases) {
    throw_if_interrupted();
    if (options.finale == Finale::kChat && phase->name == "clean-up") chat(environment, write);
    watch.begin(environment);
    if (phase->name == "clean-up") day.strip = watch.end(environment);
    write(fmt::format("{}. {} ({})\n", ++number, phase->title, phase->name));
    day.phases.push_back(play(*phase, environment, day.phases, options.write));
    write(ending_of(day.phases.back()));
  }
  day.seconds = to_seconds(real_clock().now() - start);
  return day;
}

}  // namespace yoke::gameday
