// The play itself, with phases of our own and a program that only notes what it was asked.
#include "yoke/gameday/gameday.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/gameday/summary.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::gameday {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct Played : testing::Test {
  // Notes its words in a file, says the last, and answers as the first word asks.
  void SetUp() override {
    write_file_atomically(program,
                          fmt::format("#!/bin/sh\necho \"$*\" >> {}\ncase $1 in\n"
                                      "say) echo \"$2\" ;;\nrefuse) echo '{{\"error\": {{\"message\": \"no room\", "
                                      "\"hint\": \"make some\"}}}}'; exit 9 ;;\nsleep) sleep \"$2\" ;;\nesac\n",
                                      asked_file.native()),
                          {.mode = 0755});
  }
  std::vector<std::string> asked() const {
    if (!fs::exists(asked_file)) return {};
    std::vector<std::string> lines = split(read_file(asked_file), '\n');
    std::erase(lines, "");
    return lines;
  }
  GamedayResult play(const std::vector<Phase>& phases) {
    GamedayOptions options{.environment = {.program = program},
                           .write = [&](std::string_view text) { written += text; }};
    for (const Phase& phase : phases) options.phases.push_back(&phase);
    return run_gameday(options);
  }

  ScratchDir scratch;
  fs::path program = scratch.path() / "program";
  fs::path asked_file = scratch.path() / "asked";
  std::string written;
};

void pass(Environment&, PhaseRun& phase_run) {
  phase_run.figure({.name = "speed", .value = 12.5, .unit = "GB/s", .note = "rail"});
  phase_run.expect(true, "all is well");
}
void fail_twice(Environment&, PhaseRun& phase_run) {
  phase_run.expect(false, "the first thing");
  phase_run.expect(false, "the second thing");
}
void throw_error(Environment&, PhaseRun&) { throw Error(ErrorCode::kUnavailable, "nobody answers", "try again"); }
void refuse(Environment&, PhaseRun& phase_run) { phase_run.run_json({"refuse", "a word"}); }
void begin_lab(Environment& environment, PhaseRun& phase_run) {
  environment.lab_begins();
  phase_run.run({"lab", "up"});
}
void be_interrupted(Environment& environment, PhaseRun& phase_run) {
  begin_lab(environment, phase_run);
  throw Error(ErrorCode::kInterrupted, "stopped");
}

TEST_F(Played, AFailedPhaseDoesNotEndTheDayAndWhatNeedsItIsSkipped) {
  const GamedayResult day = play({{.name = "a", .title = "A", .play = fail_twice},
                                  {.name = "b", .title = "B", .needs = {"a"}, .play = pass},
                                  {.name = "c", .title = "C", .play = throw_error},
                                  {.name = "d", .title = "D", .play = pass}});
  ASSERT_EQ(day.phases.size(), 4U);
  EXPECT_FALSE(day.passed());
  EXPECT_EQ(day.phases[0].why, "expected: the first thing");
  EXPECT_EQ(day.phases[1].verdict, Verdict::kSkipped);
  EXPECT_EQ(day.phases[1].why, "phase a failed");
  EXPECT_EQ(day.phases[2].why, "nobody answers; hint: try again");
  EXPECT_EQ(day.phases[3].verdict, Verdict::kPass);
  EXPECT_THAT(written, HasSubstr("1. A (a)\n"));
  EXPECT_THAT(written, HasSubstr("FAIL the second thing\n"));
}

TEST_F(Played, APhaseThatCannotBePlayedHereIsSkippedAndTheDayPasses) {
  const GamedayResult day = play({{.name = "a", .title = "A", .play = fail_twice, .why_not = [](const Environment&) {
                                     return std::optional<std::string>("no cable");
                                   }}});
  EXPECT_TRUE(day.passed());
  EXPECT_EQ(day.phases[0].why, "no cable");
  EXPECT_THAT(summary_text(day), HasSubstr("0 of 1 phases passed, 1 skipped"));
}

TEST_F(Played, ACommandsOwnMessageIsTheReasonOfTheFailure) {
  const GamedayResult day = play({{.name = "a", .title = "A", .play = refuse}});
  EXPECT_EQ(day.phases[0].why, "'yoke refuse 'a word' --json': no room; hint: make some");
  ASSERT_EQ(day.phases[0].commands.size(), 1U);
  EXPECT_EQ(day.phases[0].commands[0].exit_status, 9);
}

TEST_F(Played, ACommandThatTakesTooLongIsEnded) {
  const auto run_sleep_phase = [](Environment&, PhaseRun& phase_run) {
    phase_run.run({"sleep", "60"}, {.limit = 200_ms});
  };
  const Instant start = real_clock().now();
  const GamedayResult day = play({{.name = "a", .title = "A", .play = run_sleep_phase}});
  EXPECT_THAT(day.phases[0].why, HasSubstr("did not end within 200 ms"));
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 20);
}

TEST_F(Played, OutputComesWhileTheCommandRunsAndOthersCanRunMeanwhile) {
  const auto run_nested_phase = [](Environment&, PhaseRun& phase_run) {
    std::string inner;
    const Outcome outer = phase_run.run({"say", "outer"}, {.on_output = [&](pid_t, std::string_view out) {
                                          if (out == "outer\n") inner = phase_run.run({"say", "inner"}).out;
                                        }});
    phase_run.expect(outer.out == "outer\n" && inner == "inner\n", "both speak");
  };
  const GamedayResult day = play({{.name = "a", .title = "A", .play = run_nested_phase}});
  EXPECT_TRUE(day.passed()) << day.phases[0].why;
  EXPECT_EQ(day.phases[0].commands.at(0).line, "yoke say outer");
  EXPECT_EQ(day.phases[0].commands.at(1).line, "yoke say inner");
}

TEST_F(Played, ALabOfItsOwnIsTakenDownWhateverHappens) {
  play({{.name = "a", .title = "A", .play = pass}});
  EXPECT_TRUE(asked().empty()) << "what was not begun is not ended";
  EXPECT_ERROR(play({{.name = "a", .title = "A", .play = be_interrupted}}), ErrorCode::kInterrupted, "stopped");
  EXPECT_THAT(asked(), ElementsAre("lab up", HasSubstr("lab down --name gameday-")));
}

TEST_F(Played, TheFolderIsGoneAfterwardsUnlessItIsToBeKept) {
  fs::path folder;
  {
    const Environment environment({.program = program});
    folder = environment.folder();
    EXPECT_TRUE(fs::exists(folder));
  }
  EXPECT_FALSE(fs::exists(folder));
  {
    Environment environment({.program = program, .after = CleanUp::kKeep});
    environment.lab_begins();
    folder = environment.folder();
  }
  EXPECT_TRUE(fs::exists(folder));
  EXPECT_TRUE(asked().empty()) << "a lab that is kept is not ended";
  fs::remove_all(folder);
}

TEST_F(Played, ThePageIsWellFormedAndReportsEveryPhase) {
  const GamedayResult day =
      play({{.name = "a", .title = "A <b>", .play = pass}, {.name = "b", .title = "B", .play = refuse}});
  const std::string page = report::render_html(gameday_page(day));
  EXPECT_EQ(report::find_xml_error(page), std::nullopt);
  for (const char* text : {"A &lt;b&gt;", "12.5 GB/s (rail)", "all is well", "no room", "1 of 2 phases passed"})
    EXPECT_THAT(page, HasSubstr(text));
  const Document json = to_json(day);
  EXPECT_EQ(json.find("passed")->text, "false");
  EXPECT_EQ(json.find("phases")->items.at(0).find("verdict")->text, "pass");
  EXPECT_EQ(json.find("phases")->items.at(0).find("figures")->items.at(0).find("value")->text, "12.5");
}

}  // namespace
}  // namespace yoke::gameday
