// The phases in which something breaks during work: a rank is killed, half of the cable is cut. What was begun must end
// as if nothing had happened.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/text.h"
#include "yoke/gameday/lab_fault.h"
#include "yoke/gameday/phases.h"
#include "yoke/gameday/pictures.h"
#include "yoke/gameday/rank_kill.h"

namespace yoke::gameday {
namespace {

// An answer as it streams, with something happening once some of it has come.
struct Broken {
  std::string text;
  std::string notices;  // of standard error
  bool happened = false;
  bool ok = false;
  Seconds pause{};  // the longest between two pieces of text, from the event on
  AnswerCourse course;
};

Broken ask_and_break(Environment& environment, PhaseRun& phase_run, const std::string& event, std::size_t from_length,
                     const std::function<void(pid_t)>& happen) {
  Broken broken;
  broken.course.event = event;
  broken.course.tokens = environment.answer->tokens.size();
  std::vector<std::string> arguments = question(environment.model_played);
  const std::vector<std::string> where = on_all_nodes(environment);
  arguments.insert(arguments.end(), where.begin(), where.end());
  Instant last = real_clock().now();
  std::optional<Instant> first;
  const Outcome outcome = phase_run.run(arguments, {.on_output = [&](pid_t process, std::string_view out) {
                                          const Instant now = real_clock().now();
                                          if (!first) first = now;
                                          const double seconds = to_seconds(now - *first).value;
                                          broken.course.progress.push_back({seconds, out.size()});
                                          if (broken.happened)
                                            broken.pause = std::max(broken.pause, to_seconds(now - last));
                                          last = now;
                                          if (broken.happened || out.size() < from_length) return;
                                          broken.happened = true;
                                          broken.course.event_seconds = seconds;
                                          happen(process);
                                        }});
  broken.ok = outcome.ok();
  broken.text = trim(outcome.out);
  broken.notices = outcome.err;
  phase_run.print(outcome.err);
  return broken;
}

// `noticed` is what the command must have told: else the answer is the same because nothing happened to it.
void expect_same_answer(Environment& environment, PhaseRun& phase_run, const Broken& broken,
                        const std::string& noticed) {
  phase_run.print(broken.text);
  phase_run.expect(broken.happened, "it happened before the answer was complete");
  phase_run.expect(broken.notices.find(noticed) != std::string::npos, fmt::format("it was noticed: '{}'", noticed));
  phase_run.expect(broken.ok && broken.text == trim(environment.answer->text), "the answer is the same as before");
  phase_run.figure({.name = "pause", .value = broken.pause.value, .unit = "s"});
  phase_run.block(report::HtmlFacts{{{"answered", broken.text}, {"reported meanwhile", broken.notices}}});
  phase_run.block(rate_chart(broken.course));
}

// The bus bandwidths of an all-reduce's table as it is printed; lines that begin with # are no rows.
std::vector<double> bandwidths_of(std::string_view table) {
  std::vector<double> found;
  for (const std::string& line : split(table, '\n')) {
    std::vector<std::string> cells = split(line, ' ');
    std::erase(cells, "");
    if (cells.size() > 7 && cells[0] != "#") found.push_back(std::atof(cells[7].c_str()));
  }
  return found;
}

void cut_during_all_reduce(Environment& environment, PhaseRun& phase_run) {
  LabFault rail(environment, phase_run, "B");
  std::size_t rows_before = 0;
  const Outcome outcome = phase_run.run({"bench", "all-reduce", "-b", "8M", "-e", "8M", "-n", "5", "-N", "8",
                                         "--no-history", "--cluster", environment.cluster_word()},
                                        {.on_output = [&](pid_t, std::string_view out) {
                                          if (rows_before > 0 || bandwidths_of(out).empty()) return;
                                          rows_before = bandwidths_of(out).size();
                                          rail.make("rail-down", "rail B is cut");
                                        }});
  phase_run.print(outcome.err);
  phase_run.block(report::HtmlPreformatted{outcome.out + outcome.err});
  const std::vector<double> rows = bandwidths_of(outcome.out);
  phase_run.expect(outcome.err.find("is cut: going on with rail") != std::string::npos, "the cut is noticed");
  phase_run.expect(outcome.ok(), "the all-reduce goes on with what is left, every result right");
  phase_run.expect(rows_before > 0 && rows_before < rows.size(), "the cut came during the all-reduce");
  if (!rows.empty()) {
    phase_run.figure({.name = "both rails", .value = rows.front(), .unit = "GB/s"});
    phase_run.figure({.name = "one rail", .value = rows.back(), .unit = "GB/s"});
  }
  rail.clear();
}

}  // namespace

void run_kill_phase(Environment& environment, PhaseRun& phase_run) {
  RankKill death(environment, phase_run);
  const Broken broken = ask_and_break(environment, phase_run, "a rank is killed", environment.answer->text.size() / 3,
                                      [&](pid_t command) { death.happen(command); });
  expect_same_answer(environment, phase_run, broken, "restarting the lost ranks");
}

void run_cut_phase(Environment& environment, PhaseRun& phase_run) {
  cut_during_all_reduce(environment, phase_run);
  if (!environment.answer) return phase_run.print("no answer to be cut: phase model was not played");
  // Short messages, such as those of one token, go over the first rail: the other one could be cut unnoticed.
  LabFault rail(environment, phase_run, "A");
  const Broken broken = ask_and_break(environment, phase_run, "rail A is cut", 1,
                                      [&](pid_t) { rail.make("rail-down", "rail A is cut"); });
  expect_same_answer(environment, phase_run, broken, "going on with rail B");
  rail.clear();
}

}  // namespace yoke::gameday
