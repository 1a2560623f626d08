#include "yoke/job/rank_channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>

#include "yoke/base/error_testing.h"
#include "yoke/job/message_stream.h"

namespace yoke::job {
namespace {

using namespace literals;

// The supervisor's end of a line, played by the test.
struct RankChannelTest : testing::Test {
  RankChannelTest() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    supervisor.emplace(UniqueFd(pair[0]));
    channel = std::make_unique<RankChannel>(UniqueFd(pair[1]));
  }

  Message receive(MessageType type) {
    const Deadline deadline = Deadline::after(20_s);
    while (!deadline.expired()) {
      while (auto message = supervisor->next()) {
        if (message->type == type) return *std::move(message);
      }
      pollfd fd{supervisor->in_fd(), POLLIN, 0};
      poll(&fd, 1, 100);
      supervisor->read_some();
    }
    ADD_FAILURE() << "no message came";
    return {};
  }
  void tell(const Message& message) {
    supervisor->queue(message);
    supervisor->write_some();
  }
  static spec::Membership membership(int epoch) {
    return {.epoch = epoch, .token = "ab", .members = {{"spark-1", kEndpoints}, {"spark-2", kEndpoints}}};
  }

  inline static const std::vector<spec::RailEndpoint> kEndpoints = {{"A", "192.168.100.1", 4001}};
  std::optional<MessageStream> supervisor;
  std::unique_ptr<RankChannel> channel;
};

TEST_F(RankChannelTest, JoinsWithWhereItListensAndGetsTheMembers) {
  auto joined = std::async(std::launch::async, [&] { return channel->join(kEndpoints, Deadline::after(20_s)); });
  EXPECT_EQ(read_payload<Join>(receive(MessageType::kJoin)).endpoints, kEndpoints);
  tell(membership_message(membership(1)));
  EXPECT_EQ(joined.get(), membership(1));
}

TEST_F(RankChannelTest, ReportsAnAbortAndRejoinsTheNextEpoch) {
  tell(membership_message(membership(1)));
  channel->join(kEndpoints, Deadline::after(20_s));
  std::promise<std::string> reported;
  channel->on_abort([&](const Error& why) { reported.set_value(why.message()); });
  tell(error_message(MessageType::kAbort, Error(ErrorCode::kUnavailable, "rank 1 died")));
  tell(error_message(MessageType::kAbort, Error(ErrorCode::kUnavailable, "a later cause")));
  EXPECT_EQ(reported.get_future().get(), "rank 1 died");
  EXPECT_ERROR(channel->throw_if_aborted(), ErrorCode::kUnavailable, "rank 1 died");
  auto joined =
      std::async(std::launch::async, [&] { return channel->rejoin(kEndpoints, "rank 1 died", Deadline::after(20_s)); });
  receive(MessageType::kJoin);
  EXPECT_EQ(read_payload<Join>(receive(MessageType::kJoin)).why, "rank 1 died");
  tell(membership_message(membership(2)));
  EXPECT_EQ(joined.get().epoch, 2);
  EXPECT_NO_THROW(channel->throw_if_aborted()) << "of another epoch";
  channel->report_path(1, "B", PathState::kLost, "silent");
  EXPECT_EQ(read_payload<PathReport>(receive(MessageType::kPath)).epoch, 2);
}

TEST_F(RankChannelTest, AnAbortThatCameBeforeIsReportedAtOnce) {
  tell(error_message(MessageType::kAbort, Error(ErrorCode::kUnavailable, "rank 1 died")));
  std::promise<std::string> reported;
  std::once_flag once;  // it may come at once, or from the channel's thread a moment later
  for (int i = 0; i < 50; ++i) {
    channel->on_abort([&](const Error& why) { std::call_once(once, [&] { reported.set_value(why.message()); }); });
    channel->on_abort(nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  auto first = reported.get_future();
  ASSERT_EQ(first.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(first.get(), "rank 1 died");
}

TEST_F(RankChannelTest, TheEndOfTheJobEndsEveryWait) {
  auto joined = std::async(std::launch::async, [&] { return channel->join(kEndpoints, Deadline::after(20_s)); });
  receive(MessageType::kJoin);
  tell(error_message(MessageType::kStop, Error(ErrorCode::kExhausted, "out of memory on spark-2")));
  try {
    joined.get();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "out of memory on spark-2");
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  }
  EXPECT_ERROR(channel->rejoin(kEndpoints, "", Deadline::after(20_s)), ErrorCode::kExhausted,
               "out of memory on spark-2");
}

TEST_F(RankChannelTest, ASupervisorThatGoesOrRavesIsReportedNotWaitedFor) {
  auto joined = std::async(std::launch::async, [&] { return channel->join(kEndpoints, Deadline::after(20_s)); });
  receive(MessageType::kJoin);
  supervisor.reset();
  EXPECT_ERROR(joined.get(), ErrorCode::kUnavailable, "the supervisor of this node is gone");
  channel->report_ready();  // goes nowhere, and does no harm
}

TEST_F(RankChannelTest, WaitsNoLongerThanTheDeadline) {
  try {
    channel->join(kEndpoints, Deadline::after(50_ms));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  }
}

TEST(RankChannel, IsNoneOutsideOfAJob) { EXPECT_EQ(RankChannel::from_environment(), nullptr); }

TEST(RankChannel, ReadsItsRails) {
  const std::vector<RailAddress> rails = {{"A", "192.168.100.1"}, {"B", "192.168.101.1"}};
  EXPECT_EQ(print_rails(rails), "A=192.168.100.1,B=192.168.101.1");
  EXPECT_EQ(parse_rails(print_rails(rails)), rails);
  EXPECT_TRUE(parse_rails("").empty());
  EXPECT_ERROR(parse_rails("A"), ErrorCode::kInvalid, "YOKE_RAILS is 'A'");
  EXPECT_ERROR(parse_rails("A=,B=1"), ErrorCode::kInvalid, "YOKE_RAILS is 'A=,B=1'");
}

}  // namespace
}  // namespace yoke::job
