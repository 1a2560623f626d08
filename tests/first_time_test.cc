// The traps of a first day: what yoke says of a machine whose file, cables or state are not what they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "tests/engine_fixture.h"
#include "tests/lab_fixture.h"
#include "tests/terminal.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/text.h"
#include "yoke/spec/cluster.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

struct FirstTime : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
};
struct LabTimingFirstTime : FirstTime {};

std::vector<std::string> rules_in(const Outcome& outcome) {
  std::vector<std::string> rules;
  const Document answer = parse_json(outcome.out, "out");
  for (const Document& finding : answer.find("findings")->items) {
    rules.push_back(finding.find("rule")->text + " " + (finding.find("subject") ? finding.find("subject")->text : ""));
  }
  return rules;
}

std::string joined_rules(const Outcome& outcome) {
  std::string text;
  for (const std::string& rule : rules_in(outcome)) text += rule + "; ";
  return text;
}

void write_cluster(const TestLab& lab, const spec::Cluster& cluster) {
  write_file_atomically(lab.folder / "cluster.yaml", spec::print_cluster(cluster));
}

TEST_F(FirstTime, AGuideThatAddressesOneRailDoesNotMakeACleanCluster) {
  const TestLab lab({"--unconfigured"});
  for (const char* node : {"1", "2"}) {
    const std::string address = fmt::format("192.168.100.1{}/24", node);
    ASSERT_TRUE(lab.exec(node, {"ip", "addr", "add", address, "dev", "enp1s0f0np0"}).ok());
  }
  ASSERT_TRUE(lab.yoke({"link", "discover", "--seconds", "1", "-o", "cluster.yaml", "--force"}).ok());
  spec::Cluster cluster = spec::load_cluster(lab.folder / "cluster.yaml");
  ASSERT_EQ(cluster.nodes[1].rails.size(), 2U) << "the other rail is proposed beside it";
  EXPECT_EQ(to_string(cluster.nodes[1].rails[1].address), "192.168.101.12/24");
  EXPECT_EQ(cluster.fabric->mtu, 9000);
  const Outcome proposed = lab.yoke({"check", "--no-measure", "--json"});
  EXPECT_EQ(proposed.exit_status, 1);
  EXPECT_THAT(joined_rules(proposed), HasSubstr("rail-unaddressed enP2p1s0f0np0"));
  EXPECT_THAT(joined_rules(proposed), HasSubstr("mtu-small"));

  for (spec::ClusterNode& node : cluster.nodes) node.rails.pop_back();
  cluster.fabric->subnets.clear();
  write_cluster(lab, cluster);
  EXPECT_THAT(joined_rules(lab.yoke({"check", "--no-measure", "--json"})), HasSubstr("rail-unlisted enP2p1s0f0np0"));
  const Outcome test = lab.yoke({"link", "test", "--seconds", "0.2", "--no-all-reduce"});
  EXPECT_THAT(test.out, Not(HasSubstr("healthy")));
  EXPECT_THAT(test.out, HasSubstr("enP2p1s0f0np0"));
  const Outcome bench = lab.yoke({"bench", "all-reduce", "-b", "64K", "-e", "64K", "-n", "2", "--no-history"});
  EXPECT_THAT(bench.err, HasSubstr("enP2p1s0f0np0 of spark-1 has a cable and is not used"));
  const Outcome setup = lab.yoke({"link", "setup", "--dry-run"});
  EXPECT_EQ(setup.exit_status, 4);
  EXPECT_THAT(setup.err, HasSubstr("does not list it: setup would pin NCCL"));

  for (spec::ClusterNode& node : cluster.nodes) node.unused = {{"enP2p1s0f0np0", "a cable of one rail, on purpose"}};
  write_cluster(lab, cluster);
  EXPECT_THAT(joined_rules(lab.yoke({"check", "--no-measure", "--json"})), Not(HasSubstr("enP2p1s0f0np0")));
}

TEST_F(FirstTime, AFileWithoutRailsIsReportedBeforeTheManagementNetworkIsUsed) {
  const TestLab lab;
  spec::Cluster cluster = spec::load_cluster(lab.folder / "cluster.yaml");
  for (spec::ClusterNode& node : cluster.nodes) node.rails.clear();
  write_cluster(lab, cluster);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"bench", "all-reduce", "-b", "8K", "-e", "8K", "-n", "2", "--no-history"},
        std::vector<std::string>{"job", "run", "--", "true"}}) {
    const Outcome outcome = lab.yoke(command);
    EXPECT_TRUE(outcome.ok()) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("yoke: these nodes use the management network")) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("yoke link discover"));
  }
  const Outcome check = lab.yoke({"check", "--no-measure"});
  EXPECT_EQ(check.exit_status, 1);
  EXPECT_THAT(check.out, HasSubstr("the cluster file lists no rails"));
  const Outcome test = lab.yoke({"link", "test"});
  EXPECT_THAT(test.err, HasSubstr("yoke link discover -o cluster.yaml --force"));
  // What is to be typed names the file that was given, not that of the folder.
  std::filesystem::rename(lab.folder / "cluster.yaml", lab.folder / "desk.yaml");
  const std::string cure = "'yoke link discover -o desk.yaml --force --cluster desk.yaml'";
  EXPECT_THAT(lab.yoke({"link", "test", "--cluster", "desk.yaml"}).err, HasSubstr(cure));
  const Outcome named = lab.yoke({"check", "--no-measure", "--cluster", "desk.yaml", "--json"});
  EXPECT_THAT(named.out, HasSubstr(cure));
  EXPECT_THAT(lab.yoke({"job", "run", "--cluster", "desk.yaml", "--", "true"}).err, HasSubstr(cure));
}

TEST_F(FirstTime, ARingRunsAModelOnItsFirstTwoNodesAndNcclTestsLineOnAll) {
  const TestLab lab({"--nodes", "3", "--topology", "ring", "--memory", kSanitized ? "2GiB" : "256MiB"});
  const Outcome run = lab.yoke({"run", kNano, "-p", kQuestion, "-n", "8", "--nodes", "2", "--json"});
  ASSERT_TRUE(run.ok()) << run.err;
  EXPECT_EQ(parse_json(run.out, "out").find("recoveries")->items.size(), 0U);
  // The line that everybody copies: one rank on each node.
  const Outcome bench =
      lab.yoke({"bench", "all_reduce_perf", "-b", "8", "-e", "64K", "-f", "8", "-g", "1", "--no-history"});
  EXPECT_TRUE(bench.ok()) << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("Rank  2 Group"));
  EXPECT_THAT(bench.out, HasSubstr("what each node's NIC carries of its 4 rails"));
}

TEST(OneRank, ReportsThatNothingCrossedALinkAndDoesNotPass) {
  const ScratchDir scratch;
  const Outcome outcome =
      run_yoke({"bench", "all_reduce_perf", "-b", "8", "-e", "64", "-f", "8", "-g", "1", "--no-history"},
               {.folder = scratch.path(), .timeout = {60}});
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("nothing crossed a link"));
}

// The NIC of a lab's Spark carries two rails' worth however it is cabled: without its own limit, four would be 0.2
// GB/s.
TEST_F(LabTimingFirstTime, ARingIsEvaluatedByWhatItsNicsCarry) {
  const TestLab lab(
      {"--nodes", "3", "--topology", "ring", "--rail-rate", "200Mb/s", "--memory", kSanitized ? "2GiB" : "256MiB"});
  const Outcome bench = lab.yoke({"bench", "all-reduce", "-b", "4M", "-e", "4M", "-n", "3", "--no-history", "--json"});
  ASSERT_TRUE(bench.ok()) << bench.err;
  const Document run = parse_json(bench.out, "out");
  const double rate = std::stod(run.find("mean_bus_bandwidth")->text);
  EXPECT_LT(rate, 0.0525) << "GB/s: more than two rails of 200 Mb/s";
  EXPECT_GT(rate, 0.035) << "GB/s: less than 70% of two rails of 200 Mb/s";
}

TEST_F(FirstTime, ALabThatTheFolderDoesNotNameIsNeverTaken) {
  TestLab gone;
  ASSERT_TRUE(gone.yoke({"lab", "down"}).ok());
  const TestLab other;
  const ScratchDir empty;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"lab", "down"}, std::vector<std::string>{"lab", "exec", "1", "--", "hostname"},
        std::vector<std::string>{"lab", "fault", "rail-down", "--node", "1"}}) {
    const Outcome outcome = gone.yoke(command);
    EXPECT_EQ(outcome.exit_status, 5) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("lab '" + gone.name + "' of cluster.yaml is not running"));
    EXPECT_THAT(outcome.err, HasSubstr("yoke lab up --name " + gone.name));
    EXPECT_EQ(run_yoke(command, {.folder = empty.path()}).exit_status, 5);
  }
  EXPECT_EQ(other.yoke({"lab", "exec", "1", "--", "hostname"}).out, "spark-1\n") << "it is still there";
  EXPECT_TRUE(gone.yoke({"cluster", "show"}).ok()) << "a stale file is still shown";
  EXPECT_THAT(gone.yoke({"cluster", "reach"}).err, HasSubstr("is not running"));
  const Outcome up = gone.yoke({"lab", "up", "--name", other.name + "x"});
  EXPECT_EQ(up.exit_status, 10);
  EXPECT_THAT(up.err, HasSubstr("which is not running"));
  EXPECT_THAT(up.err, HasSubstr("--force"));
}

TEST_F(FirstTime, FindingsOfOtherNodesAreMentionedWhereOneNodeIsAskedFor) {
  const TestLab lab;
  ASSERT_TRUE(lab.yoke({"lab", "fault", "rail-down", "--node", "2"}).ok());
  lab.settle();
  const Outcome check = lab.yoke({"check", "--node", "spark-1", "--no-measure"});
  EXPECT_EQ(check.exit_status, 1);
  EXPECT_THAT(check.out, Not(HasSubstr("Clean")));
  EXPECT_THAT(check.out, HasSubstr("1 finding about other nodes"));
}

TEST_F(FirstTime, ALabIsKnownByItsFolderAndANodeOutlivesItsSshd) {
  const mode_t before = umask(077);
  const TestLab lab;
  umask(before);
  EXPECT_EQ(std::filesystem::status(lab.folder / "cluster.yaml").permissions(), std::filesystem::perms(0600))
      << "as the umask says";
  const Outcome status = lab.yoke({"lab", "status", "--name", lab.name});
  EXPECT_THAT(status.out, HasSubstr("A 192.168.100.1, B 192.168.101.1\n"));
  EXPECT_THAT(status.out,
              HasSubstr("It was started just now by root, cluster file " + (lab.folder / "cluster.yaml").native()));
  const ScratchDir elsewhere;
  EXPECT_THAT(run_yoke({}, {.folder = elsewhere.path()}).out,
              HasSubstr(fmt::format("'{}' (started in {})", lab.name, lab.folder.native())));
  write_file_atomically(elsewhere.path() / "cluster.yml", read_file(lab.folder / "cluster.yaml"));
  EXPECT_THAT(run_yoke({}, {.folder = elsewhere.path()}).out, HasSubstr("Next:     yoke --cluster cluster.yml\n"));
  // A machine does not go off with its sshd.
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "kill $(cat /run/sshd.pid)"}).ok());
  lab.settle();
  EXPECT_EQ(lab.exec("2", {"hostname"}).out, "spark-2\n");
  EXPECT_THAT(lab.yoke({"cluster", "reach"}).out, HasSubstr("refuses ssh"));
}

TEST(LabTimingInterrupt, EndsBenchmarksOfTheMachineAtOnceAndKeepsNothing) {
  const ScratchDir scratch;
  setenv("XDG_DATA_HOME", scratch.path().c_str(), 1);
  for (const char* what : {"memory", "matmul"}) {
    Terminal terminal(scratch.path(), {"bench", what});
    const Interrupted ended = interrupt_after(terminal, {0.5});
    EXPECT_EQ(ended.status, 130) << terminal.screen();
    EXPECT_LT(ended.took.value, 0.5) << what;
    EXPECT_THAT(terminal.screen(), Not(HasSubstr("GB/s")));
  }
  EXPECT_THAT(run_yoke({"bench", "history"}, {.folder = scratch.path()}).out, Not(HasSubstr("memory")));
  unsetenv("XDG_DATA_HOME");
}

TEST(LabTimingInterrupt, EndsABenchmarkOfTheEngineWithStatus130) {
  const ScratchDir scratch;
  // So much work that no machine is done with it before the interrupt.
  Terminal terminal(scratch.path(),
                    {"bench", "engine", kNano, "--ranks", "1", "--requests", "512", "--tokens", "1000"});
  const Interrupted ended = interrupt_after(terminal, {0.7});
  EXPECT_EQ(ended.status, 130) << terminal.screen();
}

TEST(LabTimingInterrupt, ACollectiveThatWasStoppedIsNeitherComparedNorKept) {
  const ScratchDir scratch;
  Terminal terminal(scratch.path(), {"bench", "all-reduce", "-b", "1K", "-e", "1K", "-N", "1000000", "-n", "1000"});
  ASSERT_TRUE(terminal.shows("#wrong")) << terminal.screen();
  EXPECT_EQ(interrupt_after(terminal, {0.3}).status, 130) << terminal.screen();
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("# Plan:")));
  const Command there{.environment = {{"XDG_DATA_HOME", scratch.path() / "data"}}, .folder = scratch.path()};
  EXPECT_THAT(run_yoke({"bench", "history"}, there).out, HasSubstr("Nothing was measured yet"));
}

TEST_F(LabTimingFirstTime, AnInterruptedCheckHasNoVerdictAndIsNotRemembered) {
  const TestLab lab;
  Terminal terminal(lab.folder, {"check"});
  ASSERT_TRUE(terminal.shows("measuring")) << terminal.screen();
  const Interrupted ended = interrupt_after(terminal, {0.1});
  EXPECT_EQ(ended.status, 130) << terminal.screen();
  EXPECT_LT(ended.took.value, 0.5);
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("Clean")));
  EXPECT_EQ(lab.yoke({"check", "--no-measure", "--changed"}).exit_status, 5) << "no clean check is remembered";
}

// A command that waits for a node that is off is what a person interrupts.
TEST_F(LabTimingFirstTime, CtrlCEndsWhatWaitsForANodeThatIsOff) {
  const TestLab lab;
  ASSERT_TRUE(lab.yoke({"lab", "fault", "power-off", "--node", "2"}).ok());
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"check"}, {"probe"}, {"cluster", "reach"}, {"link", "discover"}, {"support"}}) {
    std::array<double, 3> took{};  // the median counts: other work on this machine may slow one of them
    for (double& seconds : took) {
      // What the kernel knows of the silent node from the command before would end this one at once.
      ASSERT_TRUE(lab.exec("1", {"ip", "neigh", "flush", "all"}).ok());
      Terminal terminal(lab.folder, command);
      const Interrupted ended = interrupt_after(terminal, {0.5});
      EXPECT_EQ(ended.status, 130) << command.front() << terminal.screen();
      seconds = ended.took.value;
    }
    std::ranges::sort(took);
    EXPECT_LT(took[1], 0.5) << command.front();
  }
}

// Until the program on the node has begun, the processes on the way there hear the signal in its place.
TEST_F(FirstTime, ACtrlCInTheFirstMomentsIsNotLost) {
  const TestLab lab;
  for (const double wait : {0.0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05}) {
    Terminal terminal(lab.folder, {"link", "test", "--seconds", "0.5"});  // takes ten seconds if it is not stopped
    const std::string comm = fmt::format("/proc/{}/comm", terminal.pid());
    while (trim(DiskTree().read(comm).value_or("")) == "program_test") real_clock().sleep({0.0005});
    EXPECT_EQ(interrupt_after(terminal, {wait}).status, 130) << wait << terminal.screen();
  }
}

}  // namespace
}  // namespace yoke::tests
