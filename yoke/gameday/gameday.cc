#include "yoke/gameday/gameday.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/gameday/terminal.h"

namespace yoke {
namespace {

std::optional<std::string> why_skipped(const Phase& phase, const Venue& venue, const std::vector<PhaseResult>& played) {
  for (const PhaseResult& before : played) {
    const bool needed = std::find(phase.needs.begin(), phase.needs.end(), before.name) != phase.needs.end();
    if (needed && before.verdict == Verdict::kFail) return fmt::format("phase {} failed", before.name);
  }
  return phase.why_not(venue);
}

std::string failure_text(const Error& error) {
  return error.hint().empty() ? error.message() : fmt::format("{}; hint: {}", error.message(), error.hint());
}

std::string ending_of(const PhaseResult& result) {
  const std::string why = result.why.empty() ? "" : ": " + result.why;
  if (result.verdict == Verdict::kSkipped) return fmt::format("   skipped{}\n\n", why);
  return fmt::format("   {} in {}{}\n\n", to_string(result.verdict), to_string(result.seconds), why);
}

PhaseResult play(const Phase& phase, Venue& venue, const std::vector<PhaseResult>& played, const Scene::Write& write) {
  PhaseResult result{.name = std::string(phase.name), .title = std::string(phase.title)};
  if (auto why = why_skipped(phase, venue, played)) {
    result.verdict = Verdict::kSkipped;
    result.why = *std::move(why);
    return result;
  }
  Scene scene(venue, std::move(result), write);
  try {
    phase.play(venue, scene);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    scene.fail(failure_text(error));
  }
  return scene.end();
}

// The finale needs a model that runs; where that phase did not come so far there is nothing to talk to.
void chat(const Venue& venue, const Scene::Write& write) {
  if (!venue.answer) {
    write("No conversation: phase model has not given an answer.\n\n");
    return;
  }
  std::vector<std::string> words = conversation(venue);
  write(fmt::format("$ yoke {}     (Ctrl-D ends it, and the clean-up follows)\n", fmt::join(words, " ")));
  words.insert(words.begin(), venue.options().program);
  run_in_terminal(words, venue.folder());
}

}  // namespace

GamedayResult play_gameday(const GamedayOptions& options) {
  const Scene::Write write = options.write ? options.write : [](std::string_view) {};
  const Instant start = real_clock().now();
  Venue venue(options.venue);
  GamedayResult day{.place = venue.describe(), .started = utc_now()};
  write(fmt::format("Game day: {}\nCommands run in {}\n\n", day.place, venue.folder().native()));
  int number = 0;
  for (const Phase* phase : options.phases) {
    throw_if_interrupted();
    if (options.finale == Finale::kChat && phase->name == "clean-up") chat(venue, write);
    write(fmt::format("{}. {} ({})\n", ++number, phase->title, phase->name));
    day.phases.push_back(play(*phase, venue, day.phases, options.write));
    write(ending_of(day.phases.back()));
  }
  day.seconds = to_seconds(real_clock().now() - start);
  return day;
}

}  // namespace yoke
