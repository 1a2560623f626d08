// What goes wrong while the ranks themselves live: cut and broken rails, unknown clients on the port, mismatches,
// aborts, ranks that leave or do not come.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <mutex>
#include <numeric>

#include "yoke/base/rng_testing.h"
#include "yoke/comm/direct/direct.h"
#include "yoke/comm/direct/group_testing.h"
#include "yoke/comm/direct/proxy_testing.h"

namespace yoke::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two ranks on two nodes whose rails run through proxies.
class DirectFaults : public testing::Test {
 protected:
  void SetUp() override {
    group_.options().silence_limit = {0.6};
    group_.options().operation_timeout = {20};
    group_.options().on_path = [this](const PathEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }

  // Rank 1 connects; it gets other ports than rank 0 listens on.
  void make_both() {
    spec::Membership through_proxies = group_.membership();
    for (spec::RailEndpoint& endpoint : through_proxies.members[0].endpoints) {
      proxies_.push_back(std::make_unique<TestProxy>(Endpoint{endpoint.address, endpoint.port}));
      endpoint.address = proxies_.back()->endpoint().address;
      endpoint.port = proxies_.back()->endpoint().port;
    }
    std::thread other([&] {
      group_.comm(1) = make_direct(group_.listener(1), through_proxies, 1, group_.options(), Deadline::after({20}));
    });
    group_.make(0);
    other.join();
    ASSERT_TRUE(group_.comm(1));
  }

  // Sums that each rank can predict; what is wrong, or an Error, is a line.
  static std::vector<std::string> sum_many(Communicator& comm, int times, std::size_t count,
                                           const std::function<void(int)>& before = {}) {
    std::vector<float> values(count);
    for (int i = 0; i < times; ++i) {
      if (before && comm.rank() == 0) before(i);
      for (std::size_t k = 0; k < count; ++k)
        values[k] = static_cast<float>((k + static_cast<std::size_t>(i)) % 1000) + static_cast<float>(comm.rank());
      all_reduce(comm, values.data(), count, tensor::DType::kF32);
      for (std::size_t k = 0; k < count; ++k) {
        const float expected = static_cast<float>((k + static_cast<std::size_t>(i)) % 1000 * 2 + 1);
        if (values[k] != expected)
          return {fmt::format("rank {}, operation {}, element {}: {}", comm.rank(), i, k, values[k])};
      }
    }
    return {};
  }

  std::vector<PathEvent> events(PathEvent::Kind kind) {
    const std::lock_guard lock(mutex_);
    std::vector<PathEvent> found;
    std::ranges::copy_if(events_, std::back_inserter(found), [&](const PathEvent& e) { return e.kind == kind; });
    return found;
  }

  std::mutex mutex_;
  std::vector<PathEvent> events_;
  std::vector<std::unique_ptr<TestProxy>> proxies_;
  TestGroup group_{{"spark-1", "spark-2"}, kTwoRails};
};

TEST_F(DirectFaults, ACutRailIsDoneWithout) {
  make_both();
  const auto failures = group_.run([&](Communicator& comm) {
    return sum_many(comm, 30, 400'000, [&](int i) {
      if (i == 10) proxies_[1]->cut();
    });
  });
  EXPECT_THAT(failures, testing::IsEmpty());
  const std::vector<PathEvent> lost = events(PathEvent::Kind::kRailLost);
  ASSERT_EQ(lost.size(), 2U);  // each rank tells its own side
  for (const PathEvent& event : lost) EXPECT_EQ(event.rail, "B");
  EXPECT_THAT(events(PathEvent::Kind::kPeerLost), testing::IsEmpty());
}

TEST_F(DirectFaults, ALostRailIsTriedAgainAtARebuild) {
  make_both();
  EXPECT_THAT(group_.comm(0)->describe(), HasSubstr("tcp over A (127.0.0.1) and B (127.0.0.2)"));
  proxies_[1]->close();
  EXPECT_THAT(group_.run([&](Communicator& comm) { return sum_many(comm, 5, 400'000); }), testing::IsEmpty());
  while (events(PathEvent::Kind::kRailLost).size() < 2) real_clock().sleep({0.01});
  EXPECT_EQ(group_.comm(0)->describe(), "direct: tcp over A (127.0.0.1); B: not connected");
  ++group_.membership().epoch;
  const auto failures = group_.run([&](Communicator& comm) {
    comm.rebuild(group_.membership(), Deadline::after({20}));
    return sum_many(comm, 5, 400'000);
  });
  EXPECT_THAT(failures, testing::IsEmpty());
  const std::vector<PathEvent> back = events(PathEvent::Kind::kRailBack);
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].rail, "B");
}

TEST_F(DirectFaults, ARailThatBreaksInMidStreamIsDoneWithout) {
  make_both();
  proxies_[0]->break_after(1'234'567);
  const auto failures = group_.run([&](Communicator& comm) { return sum_many(comm, 30, 400'000); });
  EXPECT_THAT(failures, testing::IsEmpty());
  const std::vector<PathEvent> lost = events(PathEvent::Kind::kRailLost);
  ASSERT_EQ(lost.size(), 2U);
  for (const PathEvent& event : lost) EXPECT_EQ(event.rail, "A");
}

// The last frames of an operation may be lost with a rail when their sender already does something else.
TEST_F(DirectFaults, WhatWasLostIsSentAgainWhileTheSenderIsElsewhere) {
  make_both();
  proxies_[1]->cut();
  std::vector<float> values(400'000, 3);
  const auto failures = group_.run([&](Communicator& comm) -> std::vector<std::string> {
    std::vector<float> own = values;
    comm.enqueue({.kind = CollectiveKind::kBroadcast, .send = own.data(), .receive = own.data(), .count = own.size()},
                 tensor::Stream::cpu());
    if (comm.rank() == 0) return {};  // and calls nothing more
    return own == values ? std::vector<std::string>{} : std::vector<std::string>{"another content"};
  });
  EXPECT_THAT(failures, testing::IsEmpty());
}

TEST_F(DirectFaults, BothRailsCutNamesThePeerAndTheRails) {
  make_both();
  const Instant begin = real_clock().now();
  const auto failures = group_.run([&](Communicator& comm) {
    return sum_many(comm, 10'000, 1000, [&](int i) {
      if (i != 100) return;
      for (auto& proxy : proxies_) proxy->cut();
    });
  });
  EXPECT_LT(to_seconds(real_clock().now() - begin).value, 10);
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_THAT(failures[0],
              AllOf(HasSubstr("unavailable: rank 1 on spark-2 is gone"), HasSubstr("no sign of life on rail A for"),
                    HasSubstr("no sign of life on rail B for")));
  EXPECT_THAT(failures[1], HasSubstr("rank 0 on spark-1 is gone"));
  EXPECT_GE(events(PathEvent::Kind::kPeerLost).size(), 1U) << "the other may have been told before it saw for itself";
}

TEST_F(DirectFaults, ADifferentOperationIsReportedToAll) {
  make_both();
  const auto failures = group_.run([&](Communicator& comm) -> std::vector<std::string> {
    std::vector<float> values(100), all(200);
    if (comm.rank() == 0) all_reduce(comm, values.data(), 100, tensor::DType::kF32);
    if (comm.rank() == 1) all_gather(comm, values.data(), all.data(), 100, tensor::DType::kF32);
    barrier(comm);
    return {"went through"};
  });
  ASSERT_EQ(failures.size(), 2U);
  for (const std::string& failure : failures) {
    EXPECT_THAT(failure, AllOf(HasSubstr("invalid"), HasSubstr("all-reduce of 100 f32 (sum)"),
                               HasSubstr("all-gather of 100 f32")));
  }
}

TEST_F(DirectFaults, APeerThatDoesNotComeIsReportedWithItsPlace) {
  group_.options().operation_timeout = {0.5};
  make_both();
  const auto failures = group_.run([&](Communicator& comm) -> std::vector<std::string> {
    for (int i = 0; i < 3; ++i) barrier(comm);
    real_clock().sleep({0.3});  // a heartbeat passes
    if (comm.rank() == 0) barrier(comm);
    return {};
  });
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0],
              AllOf(HasSubstr("timeout"), HasSubstr("rank 1 on spark-2 was last heard of after operation")));
}

TEST_F(DirectFaults, WhatIsSlowIsNotLateWhileItMoves) {
  group_.options().operation_timeout = {0.5};
  make_both();
  for (const auto& proxy : proxies_) proxy->slow_down(1e6);
  const Instant begin = real_clock().now();
  EXPECT_THAT(group_.run([&](Communicator& comm) { return sum_many(comm, 1, 500'000); }), testing::IsEmpty());
  EXPECT_GT(to_seconds(real_clock().now() - begin).value, 0.8) << "too fast to show anything";
  proxies_[0]->cut();
  proxies_[1]->cut();
  EXPECT_THAT(group_.run([&](Communicator& comm) { return sum_many(comm, 1, 500'000); }), testing::SizeIs(2));
}

TEST_F(DirectFaults, AnAbortEndsABlockedOperationOnAllRanks) {
  make_both();
  std::atomic<double> ended{0};
  const Instant begin = real_clock().now();
  std::thread aborting([&] {
    real_clock().sleep({0.2});
    group_.comm(0)->abort(Error(ErrorCode::kInterrupted, "the user stopped it"));
  });
  const auto failures = group_.run([&](Communicator& comm) -> std::vector<std::string> {
    if (comm.rank() == 1) {
      while (true) comm.wait(comm.record(tensor::Stream::cpu()), Deadline::after({1}));
    }
    barrier(comm);
    return {};
  });
  ended = to_seconds(real_clock().now() - begin).value;
  aborting.join();
  EXPECT_THAT(failures, testing::ElementsAre("rank 0: interrupted: the user stopped it",
                                             "rank 1: interrupted: the user stopped it"));
  EXPECT_LT(ended, 5);
}

TEST_F(DirectFaults, ARankThatLeavesInOrderTakesNothingAlong) {
  make_both();
  const auto failures = group_.run([&](Communicator& comm) -> std::vector<std::string> {
    std::vector<float> values(1'000'000, 2);
    broadcast(comm, values.data(), values.size(), tensor::DType::kF32, 0);
    if (comm.rank() == 0) {
      group_.comm(0).reset();  // its last bytes are still on their way
      return {};
    }
    if (values != std::vector<float>(1'000'000, 2)) return {"another content"};
    barrier(comm);
    return {"went through"};
  });
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0], HasSubstr("rank 0 on spark-1 has left the group"));
  EXPECT_THAT(events(PathEvent::Kind::kPeerLost), testing::IsEmpty());
}

// Silent ones, garbage, half a greeting, a wrong token: on both ports while the group is made and while it works.
TEST_F(DirectFaults, StrangersDisturbNobody) {
  std::atomic<bool> stop{false};
  std::vector<Socket> silent;
  std::thread unknown_clients([&] {
    Random random(5);
    for (int i = 0; !stop; ++i) {
      for (const spec::RailEndpoint& endpoint : group_.membership().members[0].endpoints) {
        auto unknown = try_to([&] { return connect_tcp({endpoint.address, endpoint.port}, {}, Deadline::after({1})); });
        if (!unknown) continue;
        std::string garbage(10'000, '\0');
        for (char& c : garbage) c = static_cast<char>(random.word());
        if (i % 2 == 0) static_cast<void>(try_to([&] { unknown->send_all(garbage, Deadline::after({0.2})); }));
        if (i % 2 == 1 && silent.size() < 50) silent.push_back(std::move(*unknown));
      }
      real_clock().sleep({0.005});
    }
  });
  const auto wrong_token = [&] {
    spec::Membership other = group_.membership();
    other.token = "ffff";
    try {
      make_direct(DirectListener::open(kTwoRails), other, 1, {}, Deadline::after({0.5}));
      return std::string("was let in");
    } catch (const Error& error) {
      return std::string(info(error.code()).name);
    }
  };
  real_clock().sleep({0.1});
  make_both();
  std::string intruder;
  const auto failures = group_.run([&](Communicator& comm) {
    return sum_many(comm, 100, 20'000, [&](int i) {
      if (i == 50) intruder = wrong_token();
    });
  });
  stop = true;
  unknown_clients.join();
  EXPECT_THAT(failures, testing::IsEmpty());
  EXPECT_EQ(intruder, "timeout");
  EXPECT_THAT(events(PathEvent::Kind::kRailLost), testing::IsEmpty());
}

TEST_F(DirectFaults, ARailThatCannotBeConnectedIsLeftOut) {
  // Nobody listens on port 1.
  spec::Membership& membership = group_.membership();
  membership.members[0].endpoints[1].port = 1;
  const auto failures = group_.run([&](Communicator& comm) { return sum_many(comm, 3, 400'000); });
  EXPECT_THAT(failures, testing::IsEmpty());
  const std::vector<PathEvent> lost = events(PathEvent::Kind::kRailLost);
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[0].rail, "B");
  for (const int rank : {0, 1}) {
    EXPECT_EQ(group_.comm(rank)->describe(), "direct: tcp over A (127.0.0.1); B: not connected");
  }
}

// So a death that the job knows of ends the making of a group that can be aborted in no other way yet.
TEST_F(DirectFaults, WhoMakesAGroupMayThinkBetterOfIt) {
  group_.options().while_making = [times = 0]() mutable {
    if (++times == 3) throw Error(ErrorCode::kUnavailable, "rank 1 has died");
  };
  const Instant begin = real_clock().now();
  try {
    group_.make(0);
    FAIL() << "came together";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "rank 1 has died");
  }
  EXPECT_LT(to_seconds(real_clock().now() - begin).value, 10);
}

TEST_F(DirectFaults, WhoDoesNotComeIsNamedAtTheDeadline) {
  try {
    make_direct(group_.listener(0), group_.membership(), 0, {}, Deadline::after({0.3}));
    FAIL() << "came together";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.message(), HasSubstr("rank 1 on spark-2"));
  }
}

}  // namespace
}  // namespace yoke::comm
