#include "yoke/serve/fair_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace yoke::serve {
namespace {

std::vector<std::uint64_t> all_next(FairQueue& queue) {
  std::vector<std::uint64_t> ids;
  while (const auto id = queue.next()) ids.push_back(*id);
  return ids;
}
using Ids = std::vector<std::uint64_t>;

TEST(FairQueue, GivesPlacesInTheOrderOfArrivalToOneClient) {
  FairQueue queue(2, 10);
  for (std::uint64_t id = 1; id <= 4; ++id) queue.add("a", id);
  EXPECT_EQ(all_next(queue), (Ids{1, 2}));
  queue.remove(2);
  EXPECT_EQ(all_next(queue), Ids{3});
  EXPECT_EQ(queue.running(), 2U);
  EXPECT_EQ(queue.waiting(), 1U);
}

// One client has filled all places and half of the queue before the other comes.
TEST(FairQueue, GivesTheNextPlaceToTheClientThatHasFewest) {
  FairQueue queue(3, 100);
  for (std::uint64_t id = 1; id <= 50; ++id) queue.add("many", id);
  EXPECT_EQ(all_next(queue), (Ids{1, 2, 3}));
  queue.add("few", 51);
  queue.add("few", 52);
  EXPECT_EQ(queue.next(), std::nullopt) << "what runs goes on";
  queue.remove(1);
  EXPECT_EQ(all_next(queue), Ids{51});
  queue.remove(2);
  EXPECT_EQ(all_next(queue), Ids{4}) << "each has one now, and this came first";
  queue.remove(51);
  EXPECT_EQ(all_next(queue), Ids{52});
  queue.remove(52);
  EXPECT_EQ(all_next(queue), Ids{5}) << "with nobody else there, all places are its own";
}

TEST(FairQueue, KeepsRoomForOthersWhereOneClientHasFilledTheQueue) {
  FairQueue queue(2, 16);
  std::uint64_t id = 0;
  while (queue.has_room("many", 1)) queue.add("many", ++id);
  EXPECT_EQ(id, 16U) << "18 places, of which an eighth of the queue is for others";
  EXPECT_FALSE(queue.has_room("few", 3));
  EXPECT_TRUE(queue.has_room("few", 2));
  queue.add("few", ++id);
  queue.add("few", ++id);
  EXPECT_FALSE(queue.has_room("other", 1));
}

TEST(FairQueue, ForgetsWhatIsGivenUpWhileItWaits) {
  FairQueue queue(1, 0);
  EXPECT_TRUE(queue.has_room("a", 1));
  EXPECT_FALSE(queue.has_room("a", 2));
  queue.add("a", 1);
  EXPECT_FALSE(queue.has_room("b", 1));
  queue.remove(1);
  queue.remove(7);
  EXPECT_EQ(queue.next(), std::nullopt);
  EXPECT_TRUE(queue.has_room("b", 1));
}

}  // namespace
}  // namespace yoke::serve
