// Jobs as a person meets them: the program, real nodes over ssh, and what goes wrong on them.
#include "yoke/job/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/job/rank_channel.h"
#include "yoke/job/rank_place.h"

namespace yoke::tests {
namespace {

using namespace literals;

std::string env_value(const std::string& name) {
  const job::Environment environment = job::environment_now();
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// A rank that speaks with its job: joins, tells what it sees, and prints what it is told. Run by the tests below as
// the program of a job; by itself it is nothing.
TEST(JobRankOfTheTests, DISABLED_Runs) {
  const auto channel = job::RankChannel::from_environment();
  ASSERT_TRUE(channel) << "this is the program of a rank";
  const job::RankPlace place = job::find_rank_place(job::environment_now()).value();
  const std::string mode = env_value("TEST_RANK");
  std::vector<spec::RailEndpoint> endpoints;
  for (const job::RailAddress& rail : channel->rails())
    endpoints.push_back({rail.rail, rail.address, 4000 + place.rank});
  channel->on_abort([](const Error& why) { say("abort: " + why.message()); });
  spec::Membership group = channel->join(endpoints, Deadline::after(30_s));
  say(fmt::format("epoch {} with {} members, me on {}", group.epoch, group.size(),
                  group.members[static_cast<std::size_t>(place.rank)].node));
  if (place.rank == 0 && mode == "rail-cut") channel->report_path(1, "B", job::PathState::kLost, "silent");
  if (place.rank == 0 && mode == "both-cut") {
    channel->report_path(1, "A", job::PathState::kLost, "silent");
    channel->report_path(1, "B", job::PathState::kLost, "silent");
  }
  if (group.epoch > 1) return;
  if (mode == "rejoin") {
    if (place.rank == 1) kill(getpid(), SIGKILL);
    group = channel->rejoin(endpoints, "rank 1 is gone", Deadline::after(30_s));
    say(fmt::format("epoch {} again", group.epoch));
    return;
  }
  std::this_thread::sleep_for(mode == "rail-cut" ? std::chrono::seconds(1) : std::chrono::seconds(60));
}

// ---- on this machine

Outcome run_here(std::vector<std::string> arguments, const ScratchDir& scratch) {
  arguments.insert(arguments.begin(), {"job", "run"});
  return run_yoke(std::move(arguments), {.folder = scratch.path(), .timeout = 60_s});
}

TEST(JobCommand, JsonReportsHowItEnded) {
  const ScratchDir scratch;
  const std::string node = job::this_machine().name;
  const Outcome good = run_here({"--json", "--name", "greet", "--ranks", "2", "--", "echo", "hello"}, scratch);
  EXPECT_EQ(good.exit_status, 0) << good.err;
  EXPECT_NE(good.err.find(fmt::format("{}/1 | hello\n", node)), std::string::npos) << good.err;
  const Document reported = parse_json(good.out, "out");
  EXPECT_EQ(reported.find("job")->text, "greet");
  EXPECT_EQ(reported.find("exit_status")->text, "0");
  EXPECT_EQ(reported.find("restarts")->text, "0");
  EXPECT_EQ(reported.find("error"), nullptr);

  const Outcome bad =
      run_here({"--json", "--ranks", "2", "--", "sh", "-c", "[ $RANK = 0 ] || exit 3; sleep 60"}, scratch);
  EXPECT_EQ(bad.exit_status, 3);
  const Document failed = parse_json(bad.out, "out");
  EXPECT_EQ(failed.find("cause")->find("kind")->text, "rank-exited");
  EXPECT_EQ(failed.find("cause")->find("node")->text, node);
  EXPECT_EQ(failed.find("cause")->find("rank")->text, "1");
  EXPECT_EQ(failed.find("error")->find("exit_status")->text, "3");
  EXPECT_NE(failed.find("error")->find("message")->text.find("rank 1"), std::string::npos);
  EXPECT_NE(bad.err.find(failed.find("error")->find("message")->text), std::string::npos) << bad.err;

  const Outcome both = run_here({"--json", "--no-prefix", "--", "true"}, scratch);
  EXPECT_EQ(both.exit_status, 2);
  EXPECT_EQ(parse_json(both.out, "out").find("error")->find("code")->text, "usage");
}

TEST(JobCommand, PrefixesEveryLineWithNodeAndRank) {
  const ScratchDir scratch;
  const Outcome outcome = run_here({"--ranks", "2", "--env", "A=1", "--env", "B=2", "--", "sh", "-c",
                                    "echo $RANK $A$B; echo wrong >&2; printf partial"},
                                   scratch);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  const std::string node = job::this_machine().name;
  for (const std::string rank : {"0", "1"}) {
    EXPECT_NE(outcome.out.find(fmt::format("{}/{} | {} 12\n", node, rank, rank)), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(fmt::format("{}/{} | partial\n", node, rank)), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.err.find(fmt::format("{}/{} | wrong\n", node, rank)), std::string::npos) << outcome.err;
  }
}

TEST(JobCommand, ExitsAsTheFirstFailingRankDoes) {
  const ScratchDir scratch;
  EXPECT_EQ(run_here({"--ranks", "2", "--", "sh", "-c", "exit $RANK"}, scratch).exit_status, 1);
  const Outcome killed = run_here({"--", "sh", "-c", "kill -SEGV $$"}, scratch);
  EXPECT_EQ(killed.exit_status, 139);
  EXPECT_NE(killed.err.find("was killed by signal 11 (SIGSEGV)"), std::string::npos) << killed.err;
}

struct JobMistake {
  std::vector<std::string> arguments;
  int exit_status;
  const char* message;
};
class JobMistakes : public testing::TestWithParam<JobMistake> {};
TEST_P(JobMistakes, GetAClearError) {
  const ScratchDir scratch;
  const Outcome outcome = run_here(GetParam().arguments, scratch);
  EXPECT_EQ(outcome.exit_status, GetParam().exit_status);
  EXPECT_NE(outcome.err.find(GetParam().message), std::string::npos) << outcome.err;
}
INSTANTIATE_TEST_SUITE_P(
    All, JobMistakes,
    testing::Values(JobMistake{{}, 2, "there is no program to run"},
                    JobMistake{{"--ranks", "0", "--", "true"}, 2, "--ranks must be at least 1"},
                    JobMistake{{"--ranks", "-3", "--", "true"}, 2, "--ranks must be at least 1"},
                    JobMistake{{"--ranks", "many", "--", "true"}, 2, "'many' is not a whole number"},
                    JobMistake{{"--ranks", "1", "--ranks-per-node", "1", "--", "true"}, 2, "cannot both be given"},
                    JobMistake{{"--ranks", "4096", "--", "true"}, 2, "4096 ranks on "},
                    JobMistake{{"--ranks", "4097", "--", "true"}, 2, "more than the 4096 that a job may have"},
                    JobMistake{{"--env", "A", "--", "true"}, 2, "'A' is not NAME=VALUE"},
                    JobMistake{{"--", "printf", "\xff"}, 2, "an argument of the program is not UTF-8: '\\xff'"},
                    JobMistake{{"--env", "A=\xff", "--", "true"}, 2, "the value of A is not UTF-8"},
                    JobMistake{
                        {"--ranks", "10", "--oversubscribe", "--env", "A=" + std::string(120'000, 'a'), "--", "true"},
                        4,
                        "the message to the ranks of a node takes"},
                    JobMistake{{"--policy", "pray", "--", "true"}, 2, "--policy cannot be 'pray'"},
                    JobMistake{{"--folder", "/no/where", "--", "true"}, 5, "the folder /no/where cannot be used on "},
                    JobMistake{{"--timeout", "200ms", "--", "sleep", "300"}, 8, "took longer than 200 ms"},
                    JobMistake{{"--", "no-such-program"}, 5, "the program 'no-such-program' was not found on "}),
    [](const auto& test) { return "Case" + std::to_string(test.index); });

// Its environment is empty, its session its own, its parent gone: only that it became the supervisor's child is left.
TEST(JobCommand, EndsWhatHidByEveryWay) {
  const ScratchDir scratch;
  const std::string seconds = fmt::format("{}.{}", 300 + getpid() % 100, getpid());
  const Outcome outcome =
      run_here({"--ranks", "1", "--", "sh", "-c", "env -i setsid setsid sleep " + seconds + " & sleep 0.2"}, scratch);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(run({.argv = {"pgrep", "-f", "^sleep " + seconds}}).out, "");
}

TEST(JobCommand, OfTwoOfOneNameOneRuns) {
  const ScratchDir scratch;
  const auto start = [&] {
    return std::make_unique<Process>(Command{.argv = {YOKE_PROGRAM, "job", "run", "--ranks", "1", "--name",
                                                      fmt::format("twice-{}", getpid()), "--", "sleep", "1"},
                                             .folder = scratch.path()});
  };
  for (int round = 0; round < 3; ++round) {
    auto one = start(), other = start();
    const int sum =
        one->wait(Deadline::after(20_s)).value().exit_status + other->wait(Deadline::after(20_s)).value().exit_status;
    EXPECT_EQ(sum, info(ErrorCode::kConflict).exit_status);
  }
}

TEST(JobCommand, NamesEveryHostThatDoesNotAnswer) {
  const ScratchDir scratch;
  // Port 1 of loopback addresses: refused at once.
  write_file_atomically(scratch.path() / "cluster.yaml",
                        "name: desk\nnodes:\n  - { name: here, address: 127.0.0.1 }\n"
                        "  - { name: gone-2, address: 127.0.0.2, port: 1 }\n"
                        "  - { name: gone-3, address: 127.0.0.3, port: 1 }\n");
  const Outcome outcome = run_here({"--", "true"}, scratch);
  EXPECT_EQ(outcome.exit_status, 7) << outcome.err;
  EXPECT_NE(outcome.err.find("2 of 3 nodes cannot be used"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("gone-2"), std::string::npos);
  EXPECT_NE(outcome.err.find("gone-3"), std::string::npos);
}

TEST(JobCommand, IsListedAndStoppedFromAnotherTerminal) {
  const ScratchDir scratch;
  const std::string name = "test-" + random_token_hex(4);
  Process job({.argv = {YOKE_PROGRAM, "job", "run", "--name", name, "--", "sh", "-c", "echo up; sleep 300"},
               .folder = scratch.path()});
  ASSERT_TRUE(job.read_line(Deadline::after(20_s)));
  const Document jobs = parse_json(run_yoke({"job", "list", "--json"}, {.folder = scratch.path()}).out, "out");
  bool listed = false;
  for (const Document& each : jobs.find("jobs")->items) listed |= each.find("name")->text == name;
  EXPECT_TRUE(listed);
  const Outcome stop = run_yoke({"job", "stop", name}, {.folder = scratch.path(), .timeout = 60_s});
  EXPECT_EQ(stop.exit_status, 0) << stop.err;
  EXPECT_EQ(job.wait(Deadline::after(10_s)).value().exit_status, 128 + SIGTERM);
  EXPECT_EQ(run_yoke({"job", "stop", name}, {.folder = scratch.path()}).exit_status, 5);
}

// ---- on two nodes

// One lab for all tests of the suite: to make one costs as much as a test.
class LabJob : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (why_no_labs()) return;
    lab = std::make_unique<TestLab>();
    for (const char* node : {"1", "2"}) lab->put(node, "/proc/self/exe", kRankProgram);
  }
  static void TearDownTestSuite() { lab.reset(); }
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }

  // A job whose ranks say "up" and wait; returns once all have.
  static Process start(std::vector<std::string> options = {}, std::vector<std::string> program = {"sh", "-c", kWaits}) {
    std::vector<std::string> argv = {YOKE_PROGRAM, "job", "run"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    argv.insert(argv.end(), program.begin(), program.end());
    Process job({.argv = argv, .folder = lab->folder});
    for (int up = 0; up < 2;) {
      const auto line = job.read_line(Deadline::after(30_s));
      if (!line) throw Error(ErrorCode::kTimeout, "the ranks did not start");
      up += line->text.find("| up") != std::string::npos ? 1 : 0;
    }
    return job;
  }
  static std::vector<std::string> rank_program() {
    return {kRankProgram, "--gtest_also_run_disabled_tests", "--gtest_filter=JobRankOfTheTests.*"};
  }
  static Outcome run_ranks(std::vector<std::string> options, const std::string& mode) {
    std::vector<std::string> arguments = {"job", "run", "--env", "TEST_RANK=" + mode};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.emplace_back("--");
    for (const std::string& word : rank_program()) arguments.push_back(word);
    return lab->yoke(std::move(arguments), 40_s);
  }
  static void on(const std::string& node, const std::string& script) { lab->exec(node, {"sh", "-c", script}); }

  // What ended the job, and how long that took; then nothing of any job may be left on the nodes.
  static void expect_end(Process& job, Instant since, int exit_status, const std::string& message, Seconds limit) {
    const auto outcome = job.wait(Deadline::after(30_s));
    ASSERT_TRUE(outcome);
    const Seconds took = to_seconds(real_clock().now() - since);
    EXPECT_EQ(outcome->exit_status, exit_status) << outcome->err;
    EXPECT_NE(outcome->err.find(message), std::string::npos) << outcome->err;
    EXPECT_LT(took, limit);
    expect_nothing_left();
  }
  static void expect_nothing_left(const std::vector<std::string>& nodes = {"1", "2"}) {
    for (const std::string& node : nodes) {
      std::string left;
      for (const Deadline deadline = Deadline::after(10_s);;) {
        left = lab->exec(node, {"sh", "-c", "grep -l YOKE_JOB= /proc/[0-9]*/environ 2>/dev/null"}).out;
        if (left.empty() || deadline.expired()) break;
        real_clock().sleep(50_ms);
      }
      EXPECT_EQ(left, "") << "on node " << node;
    }
  }

  static constexpr const char* kWaits = "echo up; sleep 300 & setsid sleep 301 & sleep 302";
  static constexpr const char* kRankProgram = "/usr/local/bin/rank-of-the-tests";
  static constexpr Seconds kSoon{2};
  inline static std::unique_ptr<TestLab> lab;
};

TEST_F(LabJob, GivesTheEnvironmentOfTorchrunAndMpirun) {
  const Outcome outcome = lab->yoke({"job", "run", "--ranks-per-node", "2", "--", "sh", "-c",
                                     "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR "
                                     "$OMPI_COMM_WORLD_RANK $YOKE_NODE $YOKE_RAILS "
                                     "$ROLE_RANK/$ROLE_WORLD_SIZE $GROUP_WORLD_SIZE $OMPI_COMM_WORLD_NODE_RANK "
                                     "${TORCHELASTIC_RUN_ID%-*} $TORCHELASTIC_RESTART_COUNT"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("spark-1/1 | 1/4 1/2 0 192.168.100.1 1 spark-1 A=192.168.100.1,B=192.168.101.1 1/4 2 1 sh 0\n"),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(
      outcome.out.find("spark-2/2 | 2/4 0/2 1 192.168.100.1 2 spark-2 A=192.168.100.2,B=192.168.101.2 2/4 2 0 sh 0\n"),
      std::string::npos)
      << outcome.out;
}

TEST_F(LabJob, RunsYokeItselfWithoutItBeingInstalled) {
  const Outcome outcome = lab->yoke({"job", "run", "--", "yoke", "version"});
  EXPECT_NE(outcome.out.find("spark-2/1 | yoke "), std::string::npos) << outcome.err;
}

TEST_F(LabJob, SignalsEndAllRanksOnAllNodes) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Process job = start();
    const Instant since = real_clock().now();
    kill(job.pid(), number);
    expect_end(job, since, 128 + number, "stopped ", 5_s);
  }
}

TEST_F(LabJob, AKilledHeadLeavesNothing) {
  Process job = start();
  on("1", "kill -9 $(pgrep -f 'yoke job run')");
  job.wait(Deadline::after(20_s));
  expect_nothing_left();
}

TEST_F(LabJob, NamesAKilledRank) {
  Process job = start();
  const Instant since = real_clock().now();
  on("2", "kill -9 $(pgrep -f 'echo up' | head -1)");
  expect_end(job, since, 137, "rank 1 on spark-2 was killed by signal 9 (SIGKILL)", kSoon);
}

TEST_F(LabJob, NamesARankThatRanOutOfMemory) {
  // Without a newline tail keeps all that it reads; the node has 512 MiB.
  const Outcome outcome =
      lab->yoke({"job", "run", "--", "sh", "-c", "[ $RANK = 1 ] && exec tail /dev/zero; exec sleep 300"});
  EXPECT_EQ(outcome.exit_status, 137) << outcome.err;
  EXPECT_NE(outcome.err.find("rank 1 on spark-2 was killed by the kernel: out of memory"), std::string::npos)
      << outcome.err;
}

TEST_F(LabJob, NamesAStoppedRank) {
  Process job = start();
  const Instant since = real_clock().now();
  on("2", "kill -STOP $(pgrep -f 'echo up' | head -1)");
  expect_end(job, since, 7, "rank 1 on spark-2 is stopped (SIGSTOP)", kSoon);
}

TEST_F(LabJob, NamesAChannelThatIsGoneWhileTheNodeAnswers) {
  Process job = start();
  const Instant since = real_clock().now();
  on("1", "kill -9 $(pgrep -x ssh)");
  expect_end(job, since, 7, "the channel to spark-2 has closed, though the node answers at 10.77.0.2", kSoon);
}

TEST_F(LabJob, NamesAKilledSupervisorAndCleansUpAfterIt) {
  Process job = start();
  const Instant since = real_clock().now();
  on("2", "kill -9 $(pgrep -f 'yoke node$')");
  expect_end(job, since, 7, "the supervisor on spark-2 ended with status 137", kSoon);
}

TEST_F(LabJob, NamesADeadNode) {
  Process job = start();
  const Instant since = real_clock().now();
  ASSERT_TRUE(lab->yoke({"lab", "fault", "power-off", "--name", lab->name, "--node", "2"}).ok());
  const auto outcome = job.wait(Deadline::after(20_s));
  ASSERT_TRUE(outcome);
  EXPECT_LT(to_seconds(real_clock().now() - since), 5_s);
  EXPECT_NE(outcome->err.find("node spark-2 is dead"), std::string::npos) << outcome->err;
  expect_nothing_left({"1"});
  ASSERT_TRUE(lab->yoke({"lab", "fault", "power-on", "--name", lab->name, "--node", "2"}).ok());
  lab->put("2", "/proc/self/exe", kRankProgram);
}

TEST_F(LabJob, OneCutRailIsSaidAndTheJobGoesOn) {
  const Outcome outcome = run_ranks({}, "rail-cut");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("yoke: rail B between spark-1 and spark-2 is cut: going on with rail A\n"),
            std::string::npos)
      << outcome.err;
}

TEST_F(LabJob, BothCutRailsAreDistinguishedFromADeadNode) {
  const Outcome outcome = run_ranks({}, "both-cut");
  EXPECT_EQ(outcome.exit_status, 7) << outcome.err;
  EXPECT_NE(outcome.err.find("both rails between spark-1 and spark-2 are cut, while both nodes live"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("spark-2/1 | abort: both rails between"), std::string::npos) << outcome.out;
}

TEST_F(LabJob, StartsAMissingRankAgainAndAllRejoin) {
  const Outcome outcome = run_ranks({"--policy", "restart"}, "rejoin");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  for (const char* line :
       {"spark-1/0 | epoch 1 with 2 members, me on spark-1\n", "spark-2/1 | epoch 1 with 2 members, me on spark-2\n",
        "spark-1/0 | abort: rank 1 on spark-2 was killed by signal 9 (SIGKILL)\n", "spark-1/0 | epoch 2 again\n",
        "spark-2/1 | epoch 2 with 2 members, me on spark-2\n"}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  }
}

TEST_F(LabJob, AFloodOfOutputKillsNoHeart) {
  const ScratchDir scratch;
  // Nobody reads for longer than any silence is borne.
  Process job({.argv = {"sh", "-c",
                        fmt::format("{} job run -- sh -c 'head -c 20000000 /dev/zero | tr \"\\\\0\" x' | "
                                    "{{ sleep 5; wc -c; }}",
                                    YOKE_PROGRAM)},
               // A sanitized head keeps what it freed, and a node of the lab has 512 MiB.
               .environment = {{"ASAN_OPTIONS", "quarantine_size_mb=8"}},
               .folder = lab->folder});
  const auto outcome = job.wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->err, "");
  EXPECT_GT(std::stoll(outcome->out), 40'000'000) << "both ranks' output, with prefixes";
}

}  // namespace
}  // namespace yoke::tests
