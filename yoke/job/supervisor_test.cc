// The supervisor as a program, `yoke node`, with the test as its head.
#include "yoke/job/supervisor.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <algorithm>

#include "yoke/base/hash.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/rng_testing.h"
#include "yoke/job/job_messages.h"
#include "yoke/job/process_watch.h"

namespace yoke::job {
namespace {

using namespace literals;

class SupervisorTest : public testing::Test {
 protected:
  void send(const Message& message) { process.write(encode(message), Deadline::after(20_s)); }
  void start(const std::string& script, int ranks = 1) {
    StartRanks job{.node = "here", .argv = {"sh", "-c", script}, .grace = {0.3}};
    for (int rank = 0; rank < ranks; ++rank) job.ranks.push_back({rank, {{"RANK", std::to_string(rank)}}});
    send(to_message(MessageType::kStart, job));
  }
  // The next message of this type, keeping the supervisor alive; output on the way is collected. Ranks end in any
  // order, so others are kept for the one that awaits them later.
  std::optional<Message> await(MessageType type) {
    const auto kept =
        std::find_if(passed_over.begin(), passed_over.end(), [&](const Message& m) { return m.type == type; });
    if (kept != passed_over.end()) {
      Message message = std::move(*kept);
      passed_over.erase(kept);
      return message;
    }
    const Deadline deadline = Deadline::after(20_s);
    while (!deadline.expired()) {
      while (auto message = reader.next()) {
        if (message->type == MessageType::kOutput) output += read_output(*message).bytes;
        if (message->type == type) return message;
        const bool recurs = message->type == MessageType::kOutput || message->type == MessageType::kHeartbeat;
        if (!recurs) passed_over.push_back(std::move(*message));
      }
      if (process.at_end(OutputStream::kOut)) return std::nullopt;
      if (beating) (void)try_to([&] { send({MessageType::kHeartbeat}); });  // it may have ended meanwhile
      reader.feed(process.read_bytes(OutputStream::kOut, 1 << 16, Deadline::after(100_ms)));
    }
    return std::nullopt;
  }
  bool nothing_is_left() {
    const Deadline deadline = Deadline::after(10_s);
    while (!find_tagged_processes("YOKE_JOB=" + tag).empty() && !deadline.expired()) real_clock().sleep(20_ms);
    return find_tagged_processes("YOKE_JOB=" + tag).empty();
  }

  const std::string tag = random_token_hex(8);
  Process process{
      {.argv = {YOKE_PROGRAM, "node"}, .environment = {{kJobTagVariable, tag}}, .input_mode = InputMode::kPipe}};
  MessageReader reader;
  std::vector<Message> passed_over;
  std::string output;
  bool beating = true;
};

TEST_F(SupervisorTest, RunsRanksAndReportsTheirOutputAndEnd) {
  ASSERT_TRUE(await(MessageType::kHello));
  start("echo out $RANK; exit $RANK", 2);
  int statuses = 0;
  for (int i = 0; i < 2; ++i) statuses += read_payload<RankEnded>(await(MessageType::kEnded).value()).exit_status;
  EXPECT_EQ(statuses, 1);
  EXPECT_TRUE(await(MessageType::kClosed));
  EXPECT_TRUE(await(MessageType::kClosed));
  EXPECT_NE(output.find("out 0\n"), std::string::npos);
  EXPECT_NE(output.find("out 1\n"), std::string::npos);
  send({MessageType::kStop});
  EXPECT_TRUE(await(MessageType::kGone));
  EXPECT_EQ(process.wait(Deadline::after(10_s)).value().exit_status, 0);
}

TEST_F(SupervisorTest, ReportsTheStateOfItsNodeWhereTheHeadAsksForIt) {
  send(to_message(MessageType::kStart, StartRanks{.node = "here",
                                                  .argv = {"sleep", "300"},
                                                  .reports_state = true,
                                                  .interfaces = {"lo", "none"},
                                                  .ranks = {{.rank = 0}}}));
  const auto first = read_payload<NodeState>(await(MessageType::kNodeState).value());
  EXPECT_GT(first.memory_available_bytes.value_or(0), 0);
  EXPECT_GT(first.memory_bytes, first.memory_available_bytes);
  ASSERT_EQ(first.interfaces.size(), 2U);
  EXPECT_TRUE(first.interfaces[0].sent_bytes);
  EXPECT_EQ(first.interfaces[1], (InterfaceState{.name = "none"})) << "there is no such interface";
  EXPECT_GT(read_payload<NodeState>(await(MessageType::kNodeState).value()).time, first.time);
}

TEST_F(SupervisorTest, EndsEverythingWhenItsChannelCloses) {
  start("sleep 300 & setsid sleep 301 & trap '' TERM; echo up; while true; do sleep 1; done");
  while (output.find("up") == std::string::npos) ASSERT_TRUE(await(MessageType::kOutput));
  process.close_input();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(SupervisorTest, EndsEverythingWhenTheHeadIsSilent) {
  start("echo up; sleep 300");
  ASSERT_TRUE(await(MessageType::kOutput));
  beating = false;
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(SupervisorTest, ItsRanksDieWithItThoughItIsKilled) {
  start("echo up; exec sleep 300");
  ASSERT_TRUE(await(MessageType::kOutput));
  kill(process.pid(), SIGKILL);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(SupervisorTest, WhatWasLeftIsFoundByItsTag) {
  start("sleep 300 & echo up; sleep 301");
  ASSERT_TRUE(await(MessageType::kOutput));
  kill(process.pid(), SIGKILL);  // the rank dies with it, its child does not
  EXPECT_EQ(run({.argv = {YOKE_PROGRAM, "node", "clean", tag}, .timeout = 20_s}).exit_status, 0);
  EXPECT_TRUE(find_tagged_processes("YOKE_JOB=" + tag).empty());
}

TEST_F(SupervisorTest, WhatARankLeavesRunningEndsWithIt) {
  start("sleep 300 & echo up");
  ASSERT_TRUE(await(MessageType::kClosed));
  EXPECT_EQ(find_tagged_processes("YOKE_JOB=" + tag).size(), 1U) << "only the supervisor itself";
}

TEST_F(SupervisorTest, ReportsARankThatStandsStill) {
  start("kill -STOP $$");
  EXPECT_TRUE(await(MessageType::kStopped));
  send(to_message(MessageType::kRestart, RankList{{0}}));
  EXPECT_TRUE(read_payload<RankEnded>(await(MessageType::kEnded).value()).ended_by_us);
  EXPECT_TRUE(await(MessageType::kStarted));
}

TEST_F(SupervisorTest, OutputWaitsForCreditWhileHeartbeatsGoOn) {
  start("head -c 3000000 /dev/zero; echo done >&2");
  while (output.size() < static_cast<std::size_t>(kOutputCredit)) ASSERT_TRUE(await(MessageType::kOutput));
  EXPECT_EQ(output.size(), static_cast<std::size_t>(kOutputCredit));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(await(MessageType::kHeartbeat));
  EXPECT_EQ(output.size(), static_cast<std::size_t>(kOutputCredit));
  send(to_message(MessageType::kCredit, Credit{10'000'000}));
  ASSERT_TRUE(await(MessageType::kClosed));
  EXPECT_EQ(output.size(), 3'000'005U);
}

TEST_F(SupervisorTest, NamesAProgramThatIsNotThere) {
  send(to_message(MessageType::kStart, StartRanks{.node = "spark-2", .argv = {"no-such-program"}, .ranks = {{0, {}}}}));
  const Error error = read_error(await(MessageType::kFailed).value());
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(error.message(), "the program 'no-such-program' was not found on spark-2");
  EXPECT_TRUE(await(MessageType::kGone));
}

TEST_F(SupervisorTest, TenThousandRandomBytesEndItWithAWord) {
  Random random(7);
  std::string bytes(10'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  process.write(bytes, Deadline::after(20_s));
  beating = false;
  const auto failed = await(MessageType::kFailed);
  ASSERT_TRUE(failed);
  EXPECT_EQ(read_error(*failed).code(), ErrorCode::kInvalid);
  EXPECT_TRUE(process.wait(Deadline::after(10_s)));
}

}  // namespace
}  // namespace yoke::job
