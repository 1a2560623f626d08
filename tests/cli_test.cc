// The program as a person or a script meets it.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <regex>

#include "tests/mistake.h"
#include "tests/program.h"
#include "tests/terminal.h"
#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kDesk =
    "name: desk\nnodes:\n  - { name: spark-1, address: 192.168.1.21 }\n  - { name: spark-2, address: 192.168.1.22 }\n";

struct InFolder : testing::Test {
  ScratchDir scratch;
  Outcome yoke(std::vector<std::string> arguments) {
    return run_yoke(std::move(arguments), {.folder = scratch.path()});
  }
  void write_cluster(std::string_view text) { write_file_atomically(scratch.path() / "cluster.yaml", text); }
};
struct Cli : InFolder {};

TEST_F(Cli, AloneShowsWhereYouStandAndTheNextStep) {
  EXPECT_NE(yoke({}).out.find("no cluster file in this folder"), std::string::npos);
  write_cluster(kDesk);
  const Outcome outcome = yoke({});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.out.find("cluster 'desk' from cluster.yaml: 2 nodes, head spark-1"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("Next:"), std::string::npos);
  const Document document = parse_json(yoke({"--json"}).out, "out");
  EXPECT_EQ(document.find("nodes")->text, "2");
  EXPECT_EQ(document.find("rails")->text, "0");
  EXPECT_EQ(document.find("next")->items.at(0).text, "yoke");
  write_cluster("name: desk\nnodes:\n  - { name: spark-1, address: 127.0.0.1, port: 1 }\n");
  EXPECT_EQ(parse_json(yoke({"--json"}).out, "out").find("state")->text, "no-answer") << "nobody listens at port 1";
}

TEST_F(Cli, VersionReportsCommitCompilerAndContents) {
  const Outcome outcome = yoke({"version"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.out.find(build_info().commit), std::string::npos);
  EXPECT_NE(outcome.out.find(build_info().compiler), std::string::npos);
  EXPECT_NE(outcome.out.find("cuda: "), std::string::npos);
  EXPECT_EQ(parse_json(yoke({"version", "--json"}).out, "out").find("version")->text, build_info().version);
  EXPECT_EQ(yoke({"--version"}).out, outcome.out);
}

void add_paths(const std::vector<cli::CommandRow>& rows, const std::vector<std::string>& above,
               std::vector<std::vector<std::string>>& paths) {
  for (const cli::CommandRow& row : rows) {
    const std::vector<std::string> path = joined(above, {row.name});
    paths.push_back(path);
    add_paths(row.subcommands, path, paths);
  }
}
// The words of every command: {"bench"}, {"bench", "all-reduce"}, …
std::vector<std::vector<std::string>> command_paths() {
  std::vector<std::vector<std::string>> paths;
  add_paths(cli::public_commands(), {}, paths);
  EXPECT_GT(paths.size(), 40U);
  return paths;
}

TEST_F(Cli, HelpReportsOfEachCommandWhatItsOwnHelpDoes) {
  for (const std::vector<std::string>& path : command_paths()) {
    const Outcome outcome = yoke(joined({"help"}, path));
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, yoke(joined(path, {"--help"})).out);
  }
  EXPECT_EQ(yoke({"help", "bench", "all_reduce_perf"}).out, yoke({"bench", "all-reduce", "--help"}).out);
  EXPECT_NE(yoke({"help", "exit"}).out.find("141"), std::string::npos);
  EXPECT_EQ(yoke({"help"}).out, yoke({"--help"}).out);
  EXPECT_THAT(yoke({"bench", "all-reduce", "--help"}).out, HasSubstr("int8, int32, half, float"))
      << "names of types, not of rails";
}

TEST_F(Cli, HelpIsAListForScripts) {
  const Document help = parse_json(yoke({"help", "--json"}).out, "out");
  std::vector<std::string> names;
  for (const Document& command : help.find("commands")->items) names.push_back(command.find("name")->text);
  EXPECT_THAT(names, testing::IsSupersetOf({"lab", "link", "check", "run"}));
  EXPECT_EQ(parse_json(yoke({"help", "lab", "up", "--json"}).out, "out").find("name")->text, "up");
  EXPECT_EQ(yoke({"help", "nosuch", "--json"}).exit_status, 2);
  EXPECT_EQ(parse_json(yoke({"help", "exit", "--json"}).out, "out")
                .find("exit_statuses")
                ->items.front()
                .find("meaning")
                ->text,
            "done");
}

TEST_F(Cli, AnArgumentMayHaveTheNameOfACommand) {
  for (const std::string name : {"model", "lab", "show", "version"}) {
    const Outcome outcome = yoke({"model", "show", name});
    EXPECT_EQ(outcome.exit_status, info(ErrorCode::kNotFound).exit_status) << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
  }
}

TEST_F(Cli, ClusterShowPrintsTheCanonicalFormWhichIsItsOwn) {
  write_cluster(kDesk);
  const Outcome first = yoke({"cluster", "show"});
  ASSERT_EQ(first.exit_status, 0) << first.err;
  write_cluster(first.out);
  EXPECT_EQ(yoke({"cluster", "show"}).out, first.out);
  EXPECT_EQ(parse_json(yoke({"cluster", "show", "--json"}).out, "out").find("nodes")->items.size(), 2U);
}

class CliMistakes : public InFolder, public testing::WithParamInterface<Mistake> {};
TEST_P(CliMistakes, GetOneClearErrorWithAHint) {
  const Outcome outcome = yoke(GetParam().arguments);
  expect_clear_error(outcome, GetParam());
  EXPECT_EQ(outcome.out, "");
}
INSTANTIATE_TEST_SUITE_P(
    Lines, CliMistakes,
    testing::Values(
        Mistake{"MistypedCommand", {"verison"}, 2, "has no command 'verison'", "did you mean 'version'?"},
        Mistake{"UnknownCommand", {"zzzz"}, 2, "has no command 'zzzz'", "the commands are"},
        Mistake{"HiddenWord", {"node", "x"}, 2, "'node' is a part of yoke that other commands start", "yoke help"},
        Mistake{"HiddenRank", {"rank", "engine"}, 2, "'rank' is a part of yoke that other commands start", "yoke help"},
        Mistake{"MistypedSubcommand", {"cluster", "shw"}, 2, "'yoke cluster' has no command 'shw'", "'show'"},
        Mistake{"GroupAlone", {"cluster"}, 2, "'yoke cluster' needs a command", "show"},
        Mistake{"MistypedOption", {"version", "--jsno"}, 2, "'yoke version' has no option '--jsno'", "'--json'"},
        Mistake{"OptionWithoutValue",
                {"cluster", "show", "--cluster"},
                2,
                "--cluster needs a value",
                "--cluster FILE: the"},
        Mistake{"BenchOptionWithoutValue",
                {"bench", "all-reduce", "--iters"},
                2,
                "--iters needs a value",
                "--iters N: timed operations per size"},
        Mistake{"TooManyArguments", {"version", "now"}, 2, "does not take 'now'", "--help"},
        Mistake{"MissingArgument", {"completion"}, 2, "'yoke completion' needs SHELL", "bash"},
        Mistake{"UnknownShell", {"completion", "tcsh"}, 2, "SHELL cannot be 'tcsh'", "bash"},
        Mistake{"NoClusterFile", {"cluster", "show"}, 5, "there is no cluster.yaml in this folder", "--cluster FILE"},
        Mistake{
            "WrongClusterFile", {"cluster", "show", "--cluster", "no.yaml"}, 5, "no cluster file 'no.yaml'", "path"},
        Mistake{"HelpOfNoCommand", {"help", "bnech"}, 2, "'yoke' has no command 'bnech'", "'bench'"},
        Mistake{"HelpOfNoSubcommand", {"help", "bench", "zzzz"}, 2, "'yoke bench' has no command 'zzzz'", "all-reduce"},
        Mistake{"HelpOfAnArgument", {"help", "version", "now"}, 2, "'yoke version' has no command 'now'", "--help"},
        Mistake{"JobWithoutDashes",
                {"job", "run", "--ranks", "2", "hostname", "-f"},
                2,
                "put -- before the program 'hostname'",
                "yoke job run -- hostname -f"},
        Mistake{"LabExecWithoutDashes",
                {"lab", "exec", "1", "hostname"},
                2,
                "put -- before the program 'hostname'",
                "-- hostname"},
        Mistake{"NodeAsArgument", {"check", "spark-1"}, 2, "has no command 'spark-1'", "yoke check --node spark-1"},
        Mistake{"MistypedVersion", {"--verison"}, 2, "has no option '--verison'", "'--version'"},
        Mistake{"FolderAsClusterFile", {"cluster", "show", "--cluster", "."}, 4, "is a folder", ""},
        Mistake{"ControlCharacters", {"\x1b[31mred"}, 2, "'\\x1b[31mred'", ""}),
    [](const auto& test) { return test.param.name; });

TEST_F(Cli, ErrorsAreJsonForScripts) {
  write_cluster("name: desk\nnoodles: []\n");
  const Outcome outcome = yoke({"cluster", "show", "--json"});
  EXPECT_EQ(outcome.exit_status, 4);
  const Document error = *parse_json(outcome.out, "out").find("error");
  EXPECT_EQ(error.find("code")->text, "invalid");
  EXPECT_EQ(error.find("message")->text, "cluster.yaml:2: unknown key 'noodles'");
  EXPECT_EQ(error.find("exit_status")->text, "4");
}

TEST_F(Cli, GarbageOfTenMegabytesIsRefusedAtOnce) {
  std::string garbage;
  for (unsigned i = 0; garbage.size() < (10U << 20U); ++i) garbage += static_cast<char>(i * 7919 >> 3);
  write_cluster(garbage);
  const Outcome outcome = yoke({"cluster", "show"});
  EXPECT_EQ(outcome.exit_status, 4);
  EXPECT_NE(outcome.err.find("more than the 1 MiB"), std::string::npos) << outcome.err;
}

TEST_F(Cli, HelpOfEveryCommandHasItsUsageAndFitsEightyColumns) {
  for (const std::vector<std::string>& path : command_paths()) {
    const Outcome outcome = yoke(joined(path, {"--help"}));
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(fmt::format("yoke {}", fmt::join(path, " "))));
    EXPECT_THAT(outcome.out, HasSubstr("Examples:")) << fmt::format("{}", fmt::join(path, " "));
    for (const std::string& line : split(outcome.out, '\n')) EXPECT_LE(count_columns(line), 80U) << line;
  }
}

TEST_F(Cli, AWrongValueIsReportedInJsonToo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"job", "run", "--json", "--ranks", "x", "--", "true"},
                                             {"bench", "all-reduce", "-n", "x", "--json"},
                                             {"--json", "cluster", "show", "--cluster"}}) {
    const Outcome outcome = yoke(arguments);
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_EQ(parse_json(outcome.out, "out").find("error")->find("exit_status")->text, "2");
  }
  EXPECT_EQ(yoke({"job", "run", "--ranks", "x", "--", "yoke", "--json"}).out, "") << "that one is the program's";
}

TEST_F(Cli, AClosedOrFullStandardOutputIsAnErrorAndAClosedPipeIsQuiet) {
  const Outcome closed = run({.argv = {"sh", "-c", "exec \"$0\" version >&-", YOKE_PROGRAM}});
  EXPECT_EQ(closed.exit_status, 7);
  EXPECT_NE(closed.err.find("cannot write to standard output"), std::string::npos);
  const Outcome full = run({.argv = {"sh", "-c", "exec \"$0\" version >/dev/full", YOKE_PROGRAM}});
  EXPECT_EQ(full.exit_status, 9);
  EXPECT_NE(full.err.find("No space left"), std::string::npos);
  const Outcome pipe = run({.argv = {"bash", "-c", "\"$0\" man | true; echo ${PIPESTATUS[0]}", YOKE_PROGRAM}});
  EXPECT_TRUE(pipe.out == "141\n" || pipe.out == "0\n") << pipe.out;  // 0 where all was written before `true` ended
  EXPECT_EQ(pipe.err, "");
}

TEST_F(Cli, CtrlCEndsAWaitAtOnceWithStatus130) {
  Socket silent = listen_tcp({"127.0.0.1", 0}, {});
  // The first node is this machine, which is not logged in to.
  write_cluster(
      fmt::format("name: x\nnodes: [{{ name: a, address: 127.0.0.1 }}, {{ name: b, address: 127.0.0.1, port: {} }}]\n",
                  silent.local().port));
  Process process({.argv = {YOKE_PROGRAM, "cluster", "reach", "--timeout", "30s"}, .folder = scratch.path()});
  const Socket held = silent.accept(Deadline::after(20_s));  // now it waits for an answer
  const Instant start = real_clock().now();
  kill(process.pid(), SIGINT);
  const auto outcome = process.wait(Deadline::after(20_s));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->exit_status, 130);
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 5);
}

TEST_F(Cli, NothingIsColouredIntoAPipe) { EXPECT_EQ(yoke({"zzzz"}).err.find('\x1b'), std::string::npos); }

TEST_F(Cli, BashCompletesCommandsSubcommandsAndOptions) {
  const auto complete = [&](const std::string& words) {
    return run({.argv = {"bash", "-c",
                         "source <(\"$0\" completion bash); COMP_WORDS=($1); [[ $1 == *' ' ]] && COMP_WORDS+=(''); "
                         "COMP_WORDS[0]=$0; "
                         "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _yoke; printf '%s\\n' \"${COMPREPLY[@]}\"",
                         YOKE_PROGRAM, words}})
        .out;
  };
  EXPECT_EQ(complete("yoke vers"), "version\n");
  EXPECT_NE(complete("yoke ").find("cluster\n"), std::string::npos);
  EXPECT_EQ(complete("yoke cluster sh"), "show\n");
  EXPECT_EQ(complete("yoke completion b"), "bash\n");
  EXPECT_EQ(complete("yoke help exi"), "exit\n");
  EXPECT_EQ(complete("yoke help benc"), "bench\n");
  EXPECT_EQ(complete("yoke cluster show --js"), "--json\n");
}

TEST_F(Cli, ZshAndFishCompleteTheSameWords) {
  if (!is_installed("zsh") || !is_installed("fish")) GTEST_SKIP() << "zsh or fish is not installed";
  // What zsh would show is what _describe is given.
  const Outcome zsh = run({.argv = {"zsh", "-fc",
                                    "source <(\"$1\" completion zsh); _describe() { print -l -- ${(P)2} }; "
                                    "words=($1 cluster sh); CURRENT=3; _yoke",
                                    "zsh", YOKE_PROGRAM}});
  EXPECT_THAT(zsh.out, StartsWith("show:")) << zsh.err;
  const Outcome fish = run({.argv = {"fish", "--no-config", "-c",
                                     "function yoke; $program $argv; end; $program completion fish | source; "
                                     "complete -C 'yoke cluster sh'"},
                            .environment = {{"program", YOKE_PROGRAM}, {"HOME", scratch.path()}}});
  EXPECT_THAT(fish.out, StartsWith("show\t")) << fish.err;
}

TEST_F(Cli, ExplainsARule) {
  const Outcome one = yoke({"explain", "rail-down"});
  EXPECT_THAT(one.out, StartsWith("rail-down (error): "));
  EXPECT_THAT(one.out, HasSubstr("yoke lab fault rail-down --node 2"));
  EXPECT_THAT(yoke({"explain"}).out, HasSubstr("mtu-differs"));
  EXPECT_EQ(parse_json(yoke({"explain", "rail-down", "--json"}).out, "out").find("severity")->text, "error");
  const Outcome wrong = yoke({"explain", "rail-dwon"});
  EXPECT_EQ(wrong.exit_status, 5);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'rail-down'?"));
}

TEST_F(Cli, NoLineIsWiderThanTheTerminal) {
  for (const unsigned short columns : std::initializer_list<unsigned short>{80, 60}) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {},
             {"help"},
             {"help", "exit"},
             {"bench", "all-reduce", "--help"},
             {"explain"},
             {"explain", "rail-down"},
             {"gameday", "--list"},
             {"plan", "models"},
             {"plan", "hardware"},
             {"model", "shapes"},
             {"lab", "fault"},
             {"check", "--root", kSourceFolder / "tests/fixtures/none"},
             {"probe"},
             {"nosuch"},
             {"bench", "all-reduce", "-b", "1M", "-e", "1M", "-n", "2", "--ranks", "2", "--transport", "threads"},
             {"bench", "history"},
             {"version"}}) {
      Terminal terminal(scratch.path(), words, {.columns = columns});
      terminal.exit_status();
      for (const std::string& line :
           split(std::regex_replace(terminal.screen(), std::regex("\x1b\\[[0-9;]*[A-Za-z]"), ""), '\n')) {
        const std::string_view text = trim(line);
        if (text.starts_with("yoke ") || text.starts_with("Next:")) continue;  // a command to paste is one line
        EXPECT_THAT(text, testing::Not(testing::ContainsRegex("^(p99|max|predicte)$"))) << "a table in pieces";
        EXPECT_LE(count_columns(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line), columns)
            << fmt::format("yoke {}: {}", fmt::join(words, " "), line);
      }
    }
  }
}

TEST_F(Cli, ColoursFindingsOnATerminalThatTakesIt) {
  const std::vector<std::string> wrong = {"zzzz"};
  Terminal colour(scratch.path(), wrong);
  colour.exit_status();
  EXPECT_THAT(colour.screen(), HasSubstr("\x1b[1;31myoke:\x1b[0m"));
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"NO_COLOR", "1"}, {"TERM", "dumb"}}) {
    Terminal plain(scratch.path(), wrong, {.environment = {{name, value}}});
    plain.exit_status();
    EXPECT_EQ(plain.screen().find('\x1b'), std::string::npos) << name;
  }
}

TEST_F(Cli, TheManualPageIsValidForMan) {
  if (!is_installed("man")) GTEST_SKIP() << "man is not installed";
  write_file_atomically(scratch.path() / "yoke.1", yoke({"man"}).out);
  const Outcome outcome = run({.argv = {"man", "--warnings", "-E", "UTF-8", "-l", "yoke.1"},
                               .environment = {{"MANWIDTH", "80"}, {"MAN_KEEP_FORMATTING", ""}},
                               .folder = scratch.path()});
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("EXIT STATUS"), std::string::npos);
  EXPECT_NE(outcome.out.find("yoke cluster show"), std::string::npos);
}

// Of the cores' time, not the clock's: what else runs here takes that.
double start_time(const std::vector<std::string>& argv) {
  const auto spent = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double before = spent();
    EXPECT_TRUE(run({.argv = argv}).ok());
    least = std::min(least, spent() - before);
  }
  return least;
}

TEST_F(Cli, StartsQuickly) {
  if (!build_info().sanitizers.empty()) GTEST_SKIP() << "only a release build is quick";
  // A program that does nothing takes half a millisecond, ours four.
  EXPECT_LT(start_time({YOKE_PROGRAM, "version"}), start_time({"true"}) + 0.012);
}

TEST(Docs, ListEveryExitStatusAsTheProgramHasThem) {
  const std::string text = read_file(kSourceFolder / "docs/errors.md");
  for (const ErrorCodeInfo& row : error_codes()) {
    const std::string line =
        fmt::format("| {} | `{}` | {} | {} |", row.exit_status, row.name, row.http_status, row.meaning);
    EXPECT_NE(text.find(line), std::string::npos) << "docs/errors.md lacks: " << line;
  }
}

TEST(Docs, ClusterFilesShownAreValid) {
  const std::string text = read_file(kSourceFolder / "docs/cluster-file.md");
  const ScratchDir scratch;
  int found = 0;
  for (std::size_t at = text.find("```yaml\n"); at != std::string::npos; at = text.find("```yaml\n", at), ++found) {
    at += 8;
    write_file_atomically(scratch.path() / "cluster.yaml", text.substr(at, text.find("```", at) - at));
    const Outcome outcome = run_yoke({"cluster", "show"}, {.folder = scratch.path()});
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  }
  EXPECT_GE(found, 2);
}

// Without that a person would sit before a program that waits for words in a language of its own.
TEST(HiddenWords, SayOneSentenceOnATerminal) {
  for (const char* word : {"agent", "node", "lab-holder", "rank"}) {
    const ScratchDir scratch;
    Terminal terminal(scratch.path(), {word});
    EXPECT_TRUE(terminal.shows("is a part of yoke that other commands start: it ")) << terminal.screen();
    EXPECT_EQ(terminal.exit_status(), 2) << word;
  }
}

}  // namespace
}  // namespace yoke::tests
