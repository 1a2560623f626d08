// Ranks that others start: the program finds its place under mpirun, torchrun's variables and srun, and the ranks meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/lab_fixture.h"
#include "tests/mistake.h"
#include "tests/moved_sshd.h"
#include "yoke/base/build_info.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::AnyOf;
using testing::HasSubstr;

const std::vector<std::string> kBench = {"bench", "all-reduce", "-b", "64K", "-e", "64K", "-n", "5", "--no-history"};

std::optional<std::string> why_no_mpi() {
  if (!find_program("mpirun")) return "mpirun is not installed";
  if (!build_info().sanitizers.empty()) return "Open MPI itself makes sanitizers report";
  return std::nullopt;
}

Outcome run_under_mpirun(const ScratchDir& scratch, const std::vector<std::string>& more,
                         const std::string& ranks = "3") {
  std::vector<std::string> argv = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np",
                                   ranks};
  return run({.argv = joined(joined(std::move(argv), joined({YOKE_PROGRAM}, kBench)), more),
              .environment = {{"OMPI_MCA_mpi_yield_when_idle", "1"}},
              .folder = scratch.path(),
              .timeout = 60_s});
}

TEST(Launchers, MpirunsRanksMeasureMpi) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_under_mpirun(scratch, {});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: mpi: Open MPI"));
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(Launchers, MpirunsRanksCanTalkDirectly) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_under_mpirun(scratch, {"--transport", "direct"});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: direct: memory among ranks 0, 1, 2"));
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(Launchers, MpirunsOnlyRankMeasuresAlone) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_under_mpirun(scratch, {}, "1");
  EXPECT_EQ(outcome.exit_status, 1) << "one rank shows nothing about a link: " << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(", 1 rank; "));
  const Outcome two = run_under_mpirun(scratch, {"--ranks", "2"}, "1");
  EXPECT_THAT(two.err, HasSubstr("--ranks 2, but mpirun started 1"));
}

TEST(Launchers, OurOwnMpirunTimesPlainMpiBeside) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome =
      run_yoke(joined(kBench, {"--compare-with", "mpi"}), {.folder = scratch.path(), .timeout = 60_s});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: direct: memory among ranks 0, 1"));
  EXPECT_THAT(outcome.out, HasSubstr("# Beside Open MPI"));
}

TEST(Launchers, RanksOfTorchrunMeetAtItsMaster) {
  const ScratchDir scratch;
  const std::string port = fmt::format("{}", listen_tcp({"127.0.0.1", 0}).local().port - 1);
  const auto start = [&](int rank) {
    return std::async(std::launch::async, [&, rank] {
      return run_yoke(kBench, {.environment = {{"RANK", fmt::format("{}", rank)},
                                               {"LOCAL_RANK", fmt::format("{}", rank)},
                                               {"WORLD_SIZE", "2"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"TORCHELASTIC_RUN_ID", "none"},
                                               {"MASTER_ADDR", "localhost"},
                                               {"MASTER_PORT", port}},
                               .folder = scratch.path(),
                               .timeout = 60_s});
    });
  };
  auto second = start(1);
  auto first = start(0);
  const Outcome outcome = first.get();
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
  const Outcome other = second.get();
  EXPECT_TRUE(other.ok()) << other.err;
  EXPECT_EQ(other.out, "") << "rank 0 prints for all";
}

// ---- what a launcher says and what is so

using Variables = std::map<std::string, std::string>;

Outcome bench_with(const Variables& environment, const std::vector<std::string>& more = {}) {
  const ScratchDir scratch;
  return run_yoke(joined(kBench, more), {.environment = environment, .folder = scratch.path(), .timeout = 60_s});
}

// srun without --mpi=pmix, or the mpirun of another MPI: each process is a world of its own to its MPI.
TEST(Launchers, ARankThatMpiDoesNotKnowDoesNotMeasureAlone) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  for (const char* rank : {"0", "1"}) {
    const Outcome outcome = bench_with({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}});
    EXPECT_EQ(outcome.exit_status, info(ErrorCode::kConflict).exit_status) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("by mpirun this is rank {} of 2, but by MPI (Open MPI", rank)));
    EXPECT_EQ(outcome.out, "");
  }
  const Outcome step = bench_with({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(step.exit_status, info(ErrorCode::kConflict).exit_status) << step.out << step.err;
  EXPECT_THAT(step.err, HasSubstr("by srun this is rank 1 of 4"));
  EXPECT_THAT(step.err, HasSubstr("srun --mpi=pmix"));
}

// An engine's ranks meet in the background of rank 0: what keeps them from it must not be waited out there.
TEST(Launchers, AnEngineThatCannotMeetSaysSo) {
  const std::vector<std::string> question = {"run", kSourceFolder / "models/nano", "-p", "hi"};
  for (const char* rank : {"0", "1"}) {
    const Variables environment = {{"RANK", rank}, {"WORLD_SIZE", "2"}};
    const Outcome outcome = run_yoke(question, {.environment = environment, .timeout = 20_s});
    EXPECT_EQ(outcome.exit_status, bench_with(environment).exit_status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("torchrun did not say where rank 0 is")) << rank;
  }
}

TEST(Launchers, ALauncherOfOneProcessIsAsNone) {
  const Variables shell = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}};
  const Outcome three = bench_with(shell, {"--ranks", "3"});
  EXPECT_TRUE(three.ok()) << three.err;
  EXPECT_THAT(three.out, HasSubstr("# Transport: direct: memory among ranks 0, 1, 2"));
  const Outcome alone = bench_with({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_TRUE(alone.ok()) << alone.err;
}

struct LaunchedMistake {
  Variables environment;
  Mistake mistake;  // its arguments follow kBench
};
class LauncherMistakes : public testing::TestWithParam<LaunchedMistake> {};
TEST_P(LauncherMistakes, GetOneClearErrorWithAHint) {
  const auto& [environment, mistake] = GetParam();
  const Outcome outcome = bench_with(environment, mistake.arguments);
  expect_clear_error(outcome, mistake);
  EXPECT_EQ(outcome.out, "");
}
const Variables kTorchrun = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}};
Variables torchrun_with(const std::string& name, const std::string& value) {
  Variables variables = kTorchrun;
  variables[name] = value;
  return variables;
}
INSTANTIATE_TEST_SUITE_P(
    Lines, LauncherMistakes,
    testing::Values(
        LaunchedMistake{torchrun_with("MASTER_PORT", "junk"), {"JunkPort", {}, 4, "MASTER_PORT is 'junk'", "number"}},
        LaunchedMistake{torchrun_with("MASTER_PORT", "29500x"), {"PortAndMore", {}, 4, "'29500x', which", "number"}},
        LaunchedMistake{torchrun_with("MASTER_PORT", "65535"), {"LastPort", {}, 4, "'65535', which is", "65534"}},
        LaunchedMistake{torchrun_with("LOCAL_WORLD_SIZE", "1"),
                        {"NoSecret", {}, 4, "no secret to know each other by", "YOKE_SECRET"}},
        LaunchedMistake{torchrun_with("YOKE_SECRET", "short"),
                        {"ShortSecret", {}, 4, "YOKE_SECRET has fewer than 16 characters", "openssl rand"}},
        LaunchedMistake{torchrun_with("MASTER_ADDR", ""), {"NoMaster", {}, 4, "did not say where", "MASTER_ADDR"}},
        LaunchedMistake{kTorchrun, {"OtherRanks", {"--ranks", "3"}, 2, "--ranks 3, but torchrun started 2", "leave"}},
        LaunchedMistake{kTorchrun, {"RanksInEach", {"-g", "2"}, 2, "2 ranks in each process", "leave -t and -g"}},
        LaunchedMistake{kTorchrun, {"Threads", {"--transport", "threads"}, 2, "makes the ranks itself", "launcher"}},
        LaunchedMistake{kTorchrun,
                        {"Mpi", {"--compare-with", "mpi"}, 2, "--compare-with mpi needs ranks that MPI", "mpirun"}}),
    [](const auto& test) { return test.param.mistake.name; });

// By MPI the watchdog of a rank has the last word, directly it is a rank's own failure; never how mpirun ended for it.
// Of two that are compared either may be the first that is late.
TEST(Launchers, WhatEndedTheRanksOfOurOwnMpirunIsSaidByThemselves) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const std::vector<std::string> hurried = {"bench", "all-reduce", "-b", "64M",  "-e",          "64M",
                                            "-n",    "1000",       "-T", "0.01", "--no-history"};
  const auto by_mpi = HasSubstr(" did not end in time");
  const std::vector<std::pair<std::vector<std::string>, testing::Matcher<std::string>>> cases = {
      {{"--transport", "mpi"}, by_mpi}, {{"--compare-with", "mpi"}, AnyOf(HasSubstr(" took too long: rank "), by_mpi)}};
  for (const auto& [more, names_a_rank] : cases) {
    const ScratchDir scratch;
    const Outcome outcome = run_yoke(joined(hurried, more), {.folder = scratch.path(), .timeout = 60_s});
    EXPECT_EQ(outcome.exit_status, info(ErrorCode::kTimeout).exit_status) << outcome.err;
    const std::size_t last = outcome.err.rfind("\nyoke: ");
    ASSERT_NE(last, std::string::npos) << outcome.err;
    EXPECT_THAT(outcome.err.substr(last), names_a_rank);
  }
}

// ---- two nodes

// The bench as rank 0 on node 1 and rank 1 on node 2, each with its environment and a script that runs before it.
struct RankOnNode {
  std::string environment, before;
};
std::pair<Outcome, Outcome> run_on_two_nodes(const TestLab& lab, const RankOnNode& first, const RankOnNode& second) {
  const auto start = [&](const std::string& node, const RankOnNode& rank) {
    return std::async(std::launch::async, [&lab, node, rank] {
      const std::string script = fmt::format("{}; {} exec \"$@\"", rank.before, rank.environment);
      return lab.exec(node, joined({"unshare", "-m", "sh", "-c", script, "sh", "/usr/local/bin/yoke"}, kBench), 100_s);
    });
  };
  auto other = start("2", second);
  auto one = start("1", first);
  return {one.get(), other.get()};
}

// The names that this process and what it starts see.
std::string with_hosts(const std::string& lines) {
  return fmt::format("printf '{}' > /tmp/hosts && mount --bind /tmp/hosts /etc/hosts", lines);
}

// As Debian and Ubuntu have it: a machine's own name leads to its loopback.
TEST(Launchers, RanksOfTorchrunOnTwoNodesMeetThoughTheHeadTakesItsNameForLoopback) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  const std::string address = lab.exec("2", {"sh", "-c", "getent ahostsv4 spark-1 | awk '{print $1; exit}'"}).out;
  const std::string variables =
      "WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=head MASTER_PORT=29700 "
      "YOKE_SECRET=0123456789abcdef0123";
  const auto [first, second] = run_on_two_nodes(
      lab, {"RANK=0 " + variables, with_hosts("127.0.0.1 localhost\\n127.0.1.1 head\\n")},
      {"RANK=1 " + variables, with_hosts(fmt::format("127.0.0.1 localhost\\n{} head\\n", trim(address)))});
  EXPECT_TRUE(first.ok()) << first.out << first.err;
  EXPECT_TRUE(second.ok()) << second.err;
  EXPECT_THAT(first.out, HasSubstr("on    spark-2"));
  EXPECT_THAT(first.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(Launchers, RanksOfALeaderWorkerSetMeetThoughItsNameComesLate) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  const std::string address = lab.exec("2", {"sh", "-c", "getent ahostsv4 spark-1 | awk '{print $1; exit}'"}).out;
  const std::string variables = "LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=set-0.pods YOKE_TRUST_NETWORK=1";
  const std::string known = fmt::format("{} set-0.pods\\n", trim(address));
  const auto [first, second] =
      run_on_two_nodes(lab, {"LWS_WORKER_INDEX=0 " + variables, with_hosts(known)},
                       {"LWS_WORKER_INDEX=1 " + variables,
                        with_hosts("127.0.0.1 localhost\\n") +
                            fmt::format("; (sleep 2; printf '{}' >> /etc/hosts) &", known) + " true"});
  EXPECT_TRUE(first.ok()) << first.out << first.err;
  EXPECT_TRUE(second.ok()) << second.err;
  EXPECT_THAT(first.out, HasSubstr("on    spark-2"));
}

// A node that is reached by another port, as the cluster file says: mpirun must go there too.
TEST(Launchers, OurOwnMpirunReachesANodeByItsPort) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const TestLab lab;
  ASSERT_NO_FATAL_FAILURE(move_ssh_of_node_2(lab));
  const Outcome outcome = lab.yoke(joined(kBench, {"--transport", "mpi"}));
  EXPECT_TRUE(outcome.ok()) << outcome.err;
}

TEST(Launchers, SrunsRanksOnTwoNodesMeasureMpi) {
  if (const auto why = why_no_labs({"srun", "slurmctld", "munged"})) GTEST_SKIP() << *why;
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const TestLab lab({"--with", "slurm"});
  const Outcome outcome = lab.exec("1", joined({"srun", "-N2", "--mpi=pmix", "/usr/local/bin/yoke"}, kBench), 100_s);
  ASSERT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: mpi: Open MPI"));
  EXPECT_THAT(outcome.out, HasSubstr("on    spark-2"));
}

}  // namespace
}  // namespace yoke::tests
