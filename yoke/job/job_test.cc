// Jobs of ranks on this machine; tests/job_test.cc has those over ssh.
#include "yoke/job/job.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "yoke/agent/agent_frame.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/rng_testing.h"
#include "yoke/job/deferred_signals.h"
#include "yoke/job/job_record.h"
#include "yoke/job/message.h"
#include "yoke/job/process_watch.h"

namespace yoke::job {
namespace {

using namespace literals;

struct Seen {
  std::vector<std::string> lines, events;
  JobOutcome outcome;
};

JobSpec spec_of(std::vector<std::string> argv, int ranks) {
  return {.nodes = {{.node = this_machine(), .ranks = ranks}}, .argv = std::move(argv), .program = YOKE_PROGRAM};
}

Seen run_job(JobSpec spec) {
  Seen seen;
  spec.time_limit = 60_s;
  spec.on_output = [&](const RankOutput& output) {
    seen.lines.push_back(fmt::format("{}{}{}{}", output.rank, output.stream == OutputStream::kOut ? ">" : "!",
                                     output.text, output.line_ended ? "" : "..."));
  };
  spec.on_event = [&](const JobEvent& event) { seen.events.push_back(event.text); };
  seen.outcome = Job(std::move(spec)).wait();
  std::sort(seen.lines.begin(), seen.lines.end());
  return seen;
}

TEST(Job, GivesEveryLineWithItsRankAndStream) {
  const Seen seen = run_job(spec_of({"sh", "-c", "echo a $RANK/$WORLD_SIZE; echo b >&2; printf 'c\\377'"}, 2));
  EXPECT_EQ(seen.lines, (std::vector<std::string>{"0!b", "0>a 0/2", "0>c\xff...", "1!b", "1>a 1/2", "1>c\xff..."}));
  EXPECT_EQ(seen.outcome.exit_status, 0);
  EXPECT_FALSE(seen.outcome.cause);
}

TEST(Job, EndsWithTheStatusOfTheFirstRankThatFails) {
  const Seen seen = run_job(spec_of({"sh", "-c", "[ $RANK = 1 ] && exit 42; sleep 300"}, 3));
  EXPECT_EQ(seen.outcome.exit_status, 42);
  ASSERT_TRUE(seen.outcome.cause);
  EXPECT_EQ(seen.outcome.cause->kind, CauseKind::kRankExited);
  EXPECT_EQ(seen.outcome.cause->rank, 1);
}

TEST(Job, StartsAMissingRankAgainAsOftenAsAllowed) {
  JobSpec spec = spec_of({"sh", "-c", "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; kill -9 $$"}, 1);
  spec.policy = JobPolicy::kRestart;
  const Seen seen = run_job(spec);
  EXPECT_EQ(seen.outcome.exit_status, 0) << seen.outcome.cause->error.message();
  EXPECT_EQ(seen.outcome.restarts, 2);
  spec.argv = {"sh", "-c", "kill -9 $$"};
  const Seen hopeless = run_job(spec);
  EXPECT_EQ(hopeless.outcome.exit_status, 137);
  EXPECT_EQ(hopeless.outcome.restarts, 3);
  EXPECT_NE(hopeless.outcome.cause->error.message().find("3 restarts within 60 s are the most"), std::string::npos);
}

// One that dies less often than the window's limit is not started again for ever.
TEST(Job, EndsAfterAsManyRestartsInAllAsAllowed) {
  JobSpec spec = spec_of({"sh", "-c", "kill -9 $$"}, 1);
  spec.policy = JobPolicy::kRestart;
  spec.restarts_max = 2;
  spec.restart_window = {0};
  spec.restarts_total = 5;
  const Seen seen = run_job(spec);
  EXPECT_EQ(seen.outcome.exit_status, 137);
  EXPECT_EQ(seen.outcome.restarts, 5);
  EXPECT_NE(seen.outcome.cause->error.message().find("restarted 5 times"), std::string::npos);
}

TEST(Job, StopEndsItFromAnotherThread) {
  JobSpec spec = spec_of({"sleep", "300"}, 2);
  Job* job = nullptr;
  spec.on_event = [&](const JobEvent& event) {
    if (event.kind == JobEvent::Kind::kRanksStarted) job->stop();
  };
  Job made(std::move(spec));
  job = &made;
  EXPECT_EQ(made.wait().cause->kind, CauseKind::kStopped);
}

TEST(Job, LeavesInterruptsToACallerWhoHoldsThem) {
  const DeferredSignals held;
  JobSpec spec = spec_of({"sh", "-c", "echo up; sleep 0.3; echo done"}, 1);
  spec.interrupts = JobInterrupts::kLeft;
  std::vector<std::string> lines;
  spec.on_output = [&](const RankOutput& output) {
    if (lines.empty()) kill(getpid(), SIGINT);
    lines.emplace_back(output.text);
  };
  const JobOutcome outcome = Job(std::move(spec)).wait();
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_FALSE(outcome.cause);
  EXPECT_EQ(lines, (std::vector<std::string>{"up", "done"}));
  EXPECT_EQ(held.take(), SIGINT);
  EXPECT_EQ(held.take(), std::nullopt);
}

TEST(Job, WhatAHookThrowsEndsIt) {
  JobSpec spec = spec_of({"sh", "-c", "echo x; sleep 300"}, 1);
  spec.on_output = [](const RankOutput&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(Job(std::move(spec)).wait(), std::runtime_error);
}

TEST(Job, GivesTheFirstRanksOutputByteForByte) {
  JobSpec spec =
      spec_of({"sh", "-c", "[ $RANK = 1 ] && { echo line; exit; }; head -c 3000001 /dev/urandom | tee copy"}, 2);
  ScratchDir scratch;
  spec.folder = scratch.path();
  spec.output_form = OutputForm::kFirstRankRaw;
  std::string raw;
  spec.on_output = [&](const RankOutput& output) { raw += output.rank == 0 ? output.text : ""; };
  EXPECT_EQ(Job(std::move(spec)).wait().exit_status, 0);
  EXPECT_TRUE(raw == read_file(scratch.path() / "copy"));
}

TEST(Job, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(Job{spec_of({}, 1)}, ErrorCode::kUsage, "there is no program to run");
  EXPECT_ERROR(Job{spec_of({"true"}, 0)}, ErrorCode::kUsage, "0 ranks on");
  JobSpec named = spec_of({"true"}, 1);
  named.name = "../etc";
  EXPECT_ERROR(Job{named}, ErrorCode::kUsage, "'../etc' is no name for a job");
}

// What an agent sends where its supervisor, on the first channel, writes these bytes.
std::string from_supervisor(const std::string& bytes) {
  return agent::encode(agent::AgentFrame{.kind = agent::FrameKind::kBytes, .id = 1, .payload = "\x01" + bytes});
}

// A program in the agent's place, which greets, waits for the question, and says these bytes.
JobOutcome outcome_with_agent_output(const std::string& bytes) {
  ScratchDir scratch;
  write_file_atomically(scratch.path() / "hello", agent::encode(agent::time_frame(agent::FrameKind::kHello, 0)));
  write_file_atomically(scratch.path() / "said", bytes);
  write_file_atomically(scratch.path() / "program",
                        fmt::format("#!/bin/sh\ncd {}\ncat hello\nhead -c 1 > /dev/null\ncat said\ncat > /dev/null\n",
                                    scratch.path().native()),
                        {.mode = 0755});
  JobSpec spec = spec_of({"true"}, 1);
  spec.program = scratch.path() / "program";
  spec.time_limit = 60_s;
  return Job(std::move(spec)).wait();
}

TEST(Job, NamesANodeWithAnotherVersion) {
  const JobOutcome outcome = outcome_with_agent_output(
      from_supervisor(encode(to_message(MessageType::kHello, Hello{.version = "0.0.9", .commit = "abc"}))));
  ASSERT_TRUE(outcome.cause);
  EXPECT_EQ(outcome.cause->error.code(), ErrorCode::kConflict);
  EXPECT_NE(outcome.cause->error.message().find(this_machine().name + " runs yoke 0.0.9 (abc), this is "),
            std::string::npos)
      << outcome.cause->error.message();
}

TEST(Job, NamesANodeWhoseChannelCarriesNonsense) {
  Random random(3);
  std::string bytes(10'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  const JobOutcome outcome = outcome_with_agent_output(bytes);
  ASSERT_TRUE(outcome.cause);
  EXPECT_NE(outcome.cause->error.message().find("the channel to " + this_machine().name + " carries nonsense"),
            std::string::npos)
      << outcome.cause->error.message();
}

TEST(Job, ASupervisorThatIsEndedIsAFailureAndStartedAgainIfWanted) {
  JobSpec spec = spec_of({"sh", "-c", "kill -TERM $PPID; sleep 300"}, 2);
  const Seen seen = run_job(spec);
  EXPECT_EQ(seen.outcome.exit_status, 7);
  EXPECT_EQ(seen.outcome.cause.value().kind, CauseKind::kSupervisorEnded);
  ScratchDir scratch;
  spec.folder = scratch.path();
  spec.policy = JobPolicy::kRestart;
  spec.argv = {"sh", "-c", "[ $RANK = 0 ] && mkdir done && kill -9 $PPID; [ -d done ]"};
  const Seen again = run_job(spec);
  EXPECT_EQ(again.outcome.exit_status, 0);
  EXPECT_GE(again.outcome.restarts, 1);
}

TEST(Job, IsListedWhileItRunsUnderANameOfItsOwn) {
  JobSpec spec = spec_of({"sleep", "300"}, 1);
  spec.name = "test-" + random_token_hex(4);
  const auto is_listed = [&] {
    for (const JobRecord& job : running_jobs()) {
      if (job.name == spec.name) return true;
    }
    return false;
  };
  {
    Job job(spec);
    EXPECT_TRUE(is_listed());
    EXPECT_ERROR(Job{spec}, ErrorCode::kConflict, "is running already");
  }
  EXPECT_FALSE(is_listed());
}

TEST(Job, ACommandWithoutAJobLeavesAMarkWhileItRuns) {
  const std::string name = "yoke test-" + random_token_hex(4);
  const auto is_marked = [&] {
    return std::ranges::any_of(running_commands(), [&](const JobRecord& mark) { return mark.name == name; });
  };
  {
    const CommandMark mark(name);
    EXPECT_TRUE(is_marked());
    // One whose job is listed is not listed twice.
    const JobRecordFile job({.name = "test-" + random_token_hex(4), .head = *living_process(getpid()), .since = "now"});
    EXPECT_FALSE(is_marked());
  }
  EXPECT_FALSE(is_marked());
}

TEST(Job, TheRecordOfAHeadThatWasKilledIsRemoved) {
  JobRecord record{.name = "test-" + random_token_hex(4), .head = {getpid(), 1}, .since = "", .nodes = {"here"}};
  const std::filesystem::path file = user_runtime_dir() / "jobs" / (record.name + ".json");
  const JobRecordFile held(record);  // a process with our number that started at another time is not the head
  ASSERT_TRUE(std::filesystem::exists(file));
  for (const JobRecord& job : running_jobs()) EXPECT_NE(job.name, record.name);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace yoke::job
