// `yoke gameday` as a person meets it. The whole of it is `make gameday`; here are the phases that take seconds, every
// mistake, and Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/lab_fixture.h"
#include "tests/mistake.h"
#include "yoke/base/clock.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct Gameday : testing::Test {
  ScratchDir scratch;
  Outcome gameday(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "gameday");
    return run_yoke(std::move(arguments), {.folder = scratch.path(), .timeout = 120_s});
  }
};
struct GamedayLab : Gameday {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
    if (kSanitized) GTEST_SKIP() << "a sanitized program wants more memory than a game day's nodes have";
  }
};
struct LabTimingGameday : GamedayLab {};

const Document& phase_of(const Document& day, std::string_view name) {
  for (const Document& phase : day.find("phases")->items) {
    if (phase.find("name")->text == name) return phase;
  }
  throw Error(ErrorCode::kNotFound, fmt::format("phase {} was not played", name));
}

TEST_F(LabTimingGameday, PlaysPhasesInALabOfItsOwnAndLeavesNothing) {
  const Outcome outcome = gameday({"--phase", "lab,reach,all-reduce", "--json", "--report", "day.html"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.out << outcome.err;
  const Document day = parse_json(outcome.out, "out");
  EXPECT_EQ(day.find("passed")->text, "true");
  std::vector<std::string> names;
  for (const Document& phase : day.find("phases")->items) {
    names.push_back(phase.find("name")->text);
    EXPECT_EQ(phase.find("verdict")->text, "pass") << phase.find("why")->text;
  }
  EXPECT_THAT(names, ElementsAre("lab", "handshake", "reach", "all-reduce", "clean-up"));
  const Document& figures = *phase_of(day, "all-reduce").find("figures");
  EXPECT_EQ(figures.items.at(1).find("unit")->text, "GB/s");
  EXPECT_THAT(figures.items.at(1).find("note")->text, HasSubstr("% of 0.25 GB/s"));
  EXPECT_EQ(report::find_xml_error(read_file(scratch.path() / "day.html")), std::nullopt);
  const std::string up = phase_of(day, "lab").find("commands")->items.at(0).find("line")->text;
  const std::string lab = split(up, ' ').at(4);
  EXPECT_THAT(lab, testing::StartsWith("gameday-"));
  EXPECT_THAT(run_yoke({"lab", "status", "--json"}).out, testing::Not(HasSubstr(lab)));
}

std::vector<std::string> figures_of(const Document& phase) {
  std::vector<std::string> names;
  for (const Document& figure : phase.find("figures")->items) names.push_back(figure.find("name")->text);
  return names;
}

TEST_F(LabTimingGameday, MakesAClusterOfMachinesFromTheFactoryProvesItAndFindsFaults) {
  const Outcome outcome = gameday({"--phase", "prove,fault", "--json"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.out << outcome.err;
  const Document day = parse_json(outcome.out, "out");
  const Document& handshake = phase_of(day, "handshake");
  EXPECT_THAT(figures_of(handshake), ElementsAre("discover", "setup", "steps"));
  EXPECT_THAT(handshake.find("commands")->items.at(0).find("line")->text,
              HasSubstr("link discover --cluster factory.yaml -o lab.yaml"));
  const Document& prove = phase_of(day, "prove");
  EXPECT_THAT(figures_of(prove), ElementsAre("rail A", "rail B", "A + B", "latency"));
  EXPECT_THAT(prove.find("figures")->items.at(2).find("note")->text, HasSubstr("% of 2 Gb/s"));
  const Document& fault = phase_of(day, "fault");
  EXPECT_THAT(figures_of(fault), ElementsAre("pulled rail found in", "slow rail", "healed rail"));
  EXPECT_LT(std::stod(fault.find("figures")->items.at(1).find("value")->text), 0.3) << "Gb/s of an eighth of 1";
}

// The lab and the folder that a game day names as it begins.
struct Begun {
  std::string lab;
  fs::path folder;
};

// Reads until this text has come; then both are known.
Begun read_until(Process& process, std::string_view text) {
  Begun begun;
  while (const auto line = process.read_line(Deadline::after(60_s))) {
    const std::vector<std::string> quoted = split(line->text, '\'');
    if (line->text.starts_with("Game day: ")) begun.lab = quoted.at(1);
    if (line->text.starts_with("Commands run in ")) begun.folder = line->text.substr(16);
    if (line->text.find(text) != std::string::npos) return begun;
  }
  throw Error(ErrorCode::kTimeout, fmt::format("'{}' never came", text));
}

struct Moment {
  const char* name;
  const char* phase;
  const char* said;  // the moment is a little after this
  int signals = 1;   // an impatient user presses twice
};
void PrintTo(const Moment& moment, std::ostream* out) { *out << moment.name; }
struct GamedayCtrlC : GamedayLab, testing::WithParamInterface<Moment> {};

TEST_P(GamedayCtrlC, CleansUpAtAnyMoment) {
  Process process({.argv = {YOKE_PROGRAM, "gameday", "--phase", GetParam().phase}, .folder = scratch.path()});
  const Begun begun = read_until(process, GetParam().said);
  ASSERT_TRUE(fs::exists(begun.folder));
  for (int i = 0; i < GetParam().signals; ++i) {
    real_clock().sleep(10_ms);
    kill(process.pid(), SIGINT);
  }
  const auto outcome = process.wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 130) << outcome->err;
  EXPECT_THAT(run_yoke({"lab", "status", "--json"}).out, testing::Not(HasSubstr(begun.lab)));
  EXPECT_FALSE(fs::exists(begun.folder));
  EXPECT_EQ(run({.argv = {"pgrep", "-f", begun.lab}}).out, "") << "nothing of the lab runs on";
}
INSTANTIATE_TEST_SUITE_P(Moments, GamedayCtrlC,
                         testing::Values(Moment{"StartingTheLab", "lab", "$ yoke lab up"},
                                         Moment{"StartingTheLabTwice", "lab", "$ yoke lab up", 2},
                                         Moment{"LookingAtTheLab", "lab", "$ yoke lab status"},
                                         Moment{"Discovering", "handshake", "$ yoke link discover"},
                                         Moment{"SettingUp", "handshake", "$ yoke link setup --yes"},
                                         Moment{"SettingUpTwice", "handshake", "$ yoke link setup --yes", 2},
                                         Moment{"Reaching", "reach", "$ yoke cluster reach"},
                                         Moment{"Measuring", "all-reduce", "$ yoke bench all-reduce"},
                                         Moment{"MeasuringTwice", "all-reduce", "$ yoke bench all-reduce", 2},
                                         Moment{"PullingARail", "fault", "$ yoke lab fault rail-down"},
                                         Moment{"CuttingARail", "cut", "$ yoke lab fault rail-down"},
                                         Moment{"CleaningUp", "lab", "$ yoke lab down"}),
                         [](const auto& test) { return test.param.name; });

// Seen from a node the lab is a cluster like any other, once its file does not say "lab:".
TEST_F(GamedayLab, OnAClusterSkipsWhatOnlyALabCanPlay) {
  const TestLab lab;
  std::string text;
  for (const std::string& line : split(read_file(lab.folder / "cluster.yaml"), '\n')) {
    if (!line.starts_with("lab:")) text += line + "\n";
  }
  const Outcome written = run_yoke(lab.exec_arguments("1", {"sh", "-c", "cat > /root/real.yaml"}), {.input = text});
  ASSERT_EQ(written.exit_status, 0) << written.err;
  const Outcome outcome = lab.exec("1", {"yoke", "gameday", "--cluster", "/root/real.yaml", "--phase", "reach,kill,cut",
                                         "--json", "--report", "/root/day.html"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.out << outcome.err;
  const Document day = parse_json(outcome.out, "out");
  EXPECT_EQ(phase_of(day, "reach").find("verdict")->text, "pass");
  EXPECT_EQ(phase_of(day, "cut").find("verdict")->text, "skipped");
  EXPECT_EQ(phase_of(day, "handshake").find("verdict")->text, "skipped") << "what was given is not changed";
  EXPECT_THAT(phase_of(day, "model").find("why")->text, HasSubstr("--model DIR"));
  EXPECT_EQ(lab.yoke({"lab", "status", "--name", lab.name}).exit_status, 0) << "what was given stays";
}

// A lab of two servers, with a stand-in for NVIDIA's diagnostic: it passes on one node, and finds a fault on the other
// once that has it too.
TEST_F(GamedayLab, AcceptsServersByWhatTheirDiagnosticSays) {
  const TestLab lab({"--hardware", "b300", "--nodes", "2"});
  const auto play = [&] {
    return lab.yoke({"gameday", "--cluster", "cluster.yaml", "--phase", "servers,inside", "--json"});
  };
  const auto install = [&](const std::string& node, const std::string& result) {
    const std::string script = "#!/bin/sh\n[ \"$*\" = 'diag -r 1 -j' ] || exit 2\ncat << END\n" + result + "\nEND\n";
    const Outcome written =
        run_yoke(lab.exec_arguments(node, {"sh", "-c", "cat > /usr/local/bin/dcgmi; chmod +x /usr/local/bin/dcgmi"}),
                 {.input = script});
    ASSERT_EQ(written.exit_status, 0) << written.err;
  };
  const auto result_of = [](const std::string& status) {
    return R"({"DCGM Diagnostic":{"test_categories":[{"category":"Integration","tests":[{"name":"PCIe","results":)"
           R"([{"entity_id":5,"status":")" +
           status + R"(","warnings":[{"warning":"12 replays"}]}]}]}]}})";
  };
  install("1", result_of("Pass"));
  const Document without = parse_json(play().out, "out");
  const Document& servers = phase_of(without, "servers");
  EXPECT_EQ(servers.find("verdict")->text, "pass") << servers.find("why")->text;
  EXPECT_EQ(phase_of(without, "inside").find("verdict")->text, "skipped");
  EXPECT_THAT(phase_of(without, "inside").find("why")->text, HasSubstr("no NVLink"));
  install("2", result_of("Fail"));
  const Outcome failed = play();
  EXPECT_EQ(failed.exit_status, 1);
  const Document day = parse_json(failed.out, "out");
  EXPECT_EQ(phase_of(day, "servers").find("verdict")->text, "fail");
  EXPECT_THAT(phase_of(day, "servers").find("why")->text, HasSubstr("diagnostic passes on b300-2"));
}

TEST_F(Gameday, ListsItsPhasesWithWhatTheyNeed) {
  EXPECT_THAT(gameday({"--list"}).out, HasSubstr("all-reduce"));
  const Document list = parse_json(gameday({"--list", "--phase", "kill", "--json"}).out, "out");
  EXPECT_EQ(list.find("phases")->items.size(), 6U);
}

class GamedayMistakes : public Gameday, public testing::WithParamInterface<Mistake> {};
TEST_P(GamedayMistakes, GetOneClearErrorBeforeAnythingIsStarted) {
  write_file_atomically(scratch.path() / "desk.yaml", "name: desk\nnodes: [{ name: a, address: 127.0.0.1 }]\n");
  const Outcome outcome = gameday(GetParam().arguments);
  expect_clear_error(outcome, GetParam());
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("Game day:")));
}
INSTANTIATE_TEST_SUITE_P(
    Lines, GamedayMistakes,
    testing::Values(
        Mistake{"MistypedPhase", {"--phase", "lab,kil"}, 2, "no phase 'kil'", "'kill'"},
        Mistake{"EmptyPhase", {"--phase", ""}, 2, "no phase ''", "prove"},
        Mistake{"PhaseAsArgument", {"kill"}, 2, "does not take 'kill'", "--help"},
        Mistake{"ReportInNoFolder", {"--report", "no/such/day.html"}, 5, "cannot write", "--report FILE"},
        Mistake{"ReportIsAFolder", {"--report", "."}, 2, "is a folder", "gameday-report.html"},
        Mistake{"NoSuchModel", {"--model", "no-model"}, 5, "there is no model folder 'no-model'", "nano"},
        Mistake{
            "ModelIsAFile", {"--model", "desk.yaml"}, 5, "'desk.yaml' is a file, not a model folder", "config.json"},
        Mistake{"NoSuchClusterFile", {"--cluster", "no.yaml"}, 5, "no cluster file 'no.yaml'", "path"},
        Mistake{"PlainClusters", {"--cluster", "desk.yaml", "--plain"}, 2, "--plain is for a lab", "leave out --plain"},
        Mistake{"HardwareOfAClusters",
                {"--cluster", "desk.yaml", "--hardware", "b300"},
                2,
                "--hardware is for a lab",
                "leave out --hardware"},
        Mistake{"LabByName", {"--lab", "lab"}, 2, "takes no --lab", "--cluster FILE"},
        Mistake{"TalkAsJson", {"--interactive", "--json"}, 2, "cannot both be given", "conversation"},
        Mistake{"UnknownOption", {"--phases", "lab"}, 2, "has no option '--phases'", "--phase"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace yoke::tests
