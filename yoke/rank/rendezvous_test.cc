#include "yoke/rank/rendezvous.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/result.h"

namespace yoke::rank {
namespace {

using namespace literals;

// A port that was free a moment ago, and below those that the kernel gives to others: one of these could be taken by
// another program, or by a connection to itself.
int free_port() {
  for (int port = 20000 + getpid() % 10000;; ++port) {
    if (try_to([&] { return listen_tcp({"127.0.0.1", port}); })) return port;
  }
}

Rendezvous at(int port, int rank, int size) { return {.rank = rank, .size = size, .host = "localhost", .port = port}; }

std::vector<std::vector<std::string>> meet_all(int size, int port) {
  std::vector<std::vector<std::string>> heard(static_cast<std::size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      heard[static_cast<std::size_t>(rank)] = meet(
          at(port, rank, size),
          [&](const std::string& address) { return fmt::format("text {}\n\"of\" rank at {}", rank, address); },
          Deadline::after(20_s));
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return heard;
}

TEST(Rendezvous, EverybodyLeavesWithTheTextsOfAll) {
  for (const int size : {1, 2, 5}) {
    for (const auto& heard : meet_all(size, free_port())) {
      ASSERT_EQ(heard.size(), static_cast<std::size_t>(size));
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(heard[static_cast<std::size_t>(rank)], fmt::format("text {}\n\"of\" rank at 127.0.0.1", rank));
      }
    }
  }
}

TEST(Rendezvous, StrangersAreDroppedAndTheOthersMeet) {
  const int port = free_port();
  std::vector<std::vector<std::string>> heard;
  std::thread group([&] { heard = meet_all(3, port); });
  for (const std::string& noise : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(10000, '\xff'), std::string()}) {
    (void)try_to([&] {
      Socket unknown = connect_tcp({"127.0.0.1", port}, {}, Deadline::after(5_s));
      unknown.send_all(noise, Deadline::after(5_s));
    });
  }
  group.join();
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(heard[1].size(), 3U);
}

std::string framed(const std::string& text) {
  std::string frame = "yoke rendezvous 3\n";
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<char>((text.size() >> shift) & 0xffU));
  return frame + text;
}

// It speaks as a rank does, claims one that is missing, and is there first.
TEST(Rendezvous, AStrangerWithoutTheSecretLearnsNothing) {
  const int port = free_port();
  const TellOwn mine = [](const std::string&) { return "token"; };
  const auto group = [&](int rank) {
    return Rendezvous{.rank = rank, .size = 2, .host = "localhost", .port = port, .secret = "a secret of ours"};
  };
  std::vector<std::string> heard;
  std::thread host([&] { heard = meet(group(0), mine, Deadline::after(20_s)); });
  std::string said;
  for (const Deadline deadline = Deadline::after(10_s); said.empty() && !deadline.expired();) {
    (void)try_to([&] {
      Socket unknown = connect_tcp({"127.0.0.1", port}, {}, Deadline::after(1_s));
      unknown.send_all(
          framed(R"({"rank": 1, "size": 2, "number": "0"})") + framed(std::string(64, '0')) + framed(R"({"epoch": 1})"),
          Deadline::after(1_s));
      for (std::byte piece{};;) {
        unknown.receive_exact({&piece, 1}, Deadline::after(5_s));
        said.push_back(static_cast<char>(piece));
      }
    });
  }
  EXPECT_NE(said.find("proof"), std::string::npos) << "it was challenged";
  EXPECT_EQ(said.find("token"), std::string::npos) << said;
  const auto rank_1 = try_to([&] { return meet(group(1), mine, Deadline::after(20_s)); });
  host.join();
  ASSERT_TRUE(rank_1) << rank_1.error().message();
  EXPECT_EQ(heard.size(), 2U);
}

TEST(Rendezvous, RanksWithDifferentSecretsDoNotMeet) {
  const int port = free_port();
  const TellOwn mine = [](const std::string&) { return "text"; };
  const auto meet_with = [&](int rank, const std::string& secret, Seconds time) {
    return try_to([&] {
      return meet({.rank = rank, .size = 2, .host = "localhost", .port = port, .secret = secret}, mine,
                  Deadline::after(time));
    });
  };
  std::thread host([&] {
    const auto outcome = meet_with(0, "one secret of ours", 2_s);
    EXPECT_FALSE(outcome);
    if (!outcome) EXPECT_NE(outcome.error().hint().find("YOKE_SECRET"), std::string::npos);
  });
  const auto guest = meet_with(1, "another secret", 1_s);
  host.join();
  ASSERT_FALSE(guest);
  EXPECT_NE(guest.error().message().find("does not know the secret"), std::string::npos) << guest.error().message();
}

// Another user of the machine, by a process of its own: nobody else can be one.
TEST(Rendezvous, WithoutASecretOnlyThisUsersProcessesTakePart) {
  if (geteuid() != 0) GTEST_SKIP() << "a lab needs root";
  const int port = free_port();
  const auto group = [&](int rank) {
    return Rendezvous{
        .rank = rank, .size = 2, .host = "localhost", .port = port, .peers = Rendezvous::Peers::kThisUser};
  };
  const TellOwn mine = [](const std::string&) { return "text"; };
  const auto attend_as = [&](uid_t user, Seconds time) {
    return wait_for_child(fork_call([&]() -> int {
      if (user != 0 && setuid(user) != 0) return 2;
      const auto outcome = try_to([&] { return meet(group(1), mine, Deadline::after(time)); });
      return outcome ? 0 : 3;
    }));
  };
  const pid_t host =
      fork_call([&]() -> int { return meet(group(0), mine, Deadline::after(20_s)).size() == 2 ? 0 : 1; });
  EXPECT_EQ(WEXITSTATUS(attend_as(54321, 1_s)), 3) << "an unknown client";
  EXPECT_EQ(WEXITSTATUS(attend_as(0, 15_s)), 0);
  EXPECT_EQ(wait_for_child(host), 0);
}

TEST(Rendezvous, AtTheDeadlineTheMissingRanksAreNamed) {
  const int port = free_port();
  const TellOwn nothing = [](const std::string&) { return "here"; };
  std::thread second([&] { (void)try_to([&] { meet(at(port, 1, 4), nothing, Deadline::after(1_s)); }); });
  try {
    meet(at(port, 0, 4), nothing, Deadline::after(1_s));
    ADD_FAILURE() << "nobody was missed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(error.what()).find("did not come to"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(": 2, 3"), std::string::npos) << error.what();
  }
  second.join();
}

TEST(Rendezvous, ANameWithoutAnAddressIsAskedForUntilTheDeadline) {
  const Instant start = real_clock().now();
  try {
    meet(
        {.rank = 1, .size = 2, .host = "no-such-host.invalid", .port = 1},
        [](const std::string&) { return std::string(); }, Deadline::after(300_ms));
    ADD_FAILURE() << "it was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(error.message().find("the name 'no-such-host.invalid' has no IPv4 address"), std::string::npos)
        << error.message();
  }
  EXPECT_GE(to_seconds(real_clock().now() - start).value, 0.3);
}

TEST(Rendezvous, WhatARankCannotReportIsItsErrorAtOnce) {
  const int port = free_port();
  std::thread host([&] {
    (void)try_to([&] {
      meet(
          at(port, 0, 2), [](const std::string&) { return "host"; }, Deadline::after(20_s));
    });
  });
  const TellOwn failing = [](const std::string&) -> std::string { throw Error(ErrorCode::kInvalid, "no address"); };
  const auto outcome = try_to([&] { return meet(at(port, 1, 2), failing, Deadline::after(20_s)); });
  host.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message(), "no address");
}

}  // namespace
}  // namespace yoke::rank
