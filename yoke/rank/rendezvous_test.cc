#include "yoke/rank/rendezvous.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/result.h"

namespace yoke {
namespace {

using namespace literals;

// A port that was free a moment ago.
Endpoint free_endpoint() { return listen_tcp({"127.0.0.1", 0}).local(); }

std::vector<std::vector<std::string>> meet_all(int size, const Endpoint& at) {
  std::vector<std::vector<std::string>> heard(static_cast<std::size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      heard[static_cast<std::size_t>(rank)] = meet({.rank = rank, .size = size, .at = at},
                                                   fmt::format("text {}\n\"of\" rank", rank), Deadline::after(20_s));
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return heard;
}

TEST(Rendezvous, EverybodyLeavesWithTheTextsOfAll) {
  for (const int size : {1, 2, 5}) {
    for (const auto& heard : meet_all(size, free_endpoint())) {
      ASSERT_EQ(heard.size(), static_cast<std::size_t>(size));
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(heard[static_cast<std::size_t>(rank)], fmt::format("text {}\n\"of\" rank", rank));
      }
    }
  }
}

TEST(Rendezvous, StrangersAreDroppedAndTheOthersMeet) {
  const Endpoint at = free_endpoint();
  std::vector<std::vector<std::string>> heard;
  std::thread group([&] { heard = meet_all(3, at); });
  for (const std::string& noise : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(10000, '\xff'), std::string()}) {
    (void)try_to([&] {
      Socket stranger = connect_tcp(at, {}, Deadline::after(5_s));
      stranger.send_all(noise, Deadline::after(5_s));
    });
  }
  group.join();
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(heard[1].size(), 3U);
}

TEST(Rendezvous, AtTheDeadlineTheMissingRanksAreNamed) {
  const Endpoint at = free_endpoint();
  std::thread second(
      [&] { (void)try_to([&] { meet({.rank = 1, .size = 4, .at = at}, "here", Deadline::after(1_s)); }); });
  try {
    meet({.rank = 0, .size = 4, .at = at}, "host", Deadline::after(1_s));
    ADD_FAILURE() << "nobody was missed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(error.what()).find("did not come to"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(": 2, 3"), std::string::npos) << error.what();
  }
  second.join();
}

}  // namespace
}  // namespace yoke
