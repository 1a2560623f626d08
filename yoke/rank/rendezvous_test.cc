#include "yoke/rank/rendezvous.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/result.h"

namespace yoke {
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
      Socket stranger = connect_tcp({"127.0.0.1", port}, {}, Deadline::after(5_s));
      stranger.send_all(noise, Deadline::after(5_s));
    });
  }
  group.join();
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(heard[1].size(), 3U);
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

TEST(Rendezvous, WhatARankCannotTellIsItsErrorAtOnce) {
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
}  // namespace yoke
