#include "yoke/engine/rank_report.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"

namespace yoke::engine {
namespace {

constexpr std::int64_t kFree = 600;

RankReport newcomer(const char* node, int local_size, const char* model = "a") {
  return {.node = node, .local_size = local_size, .available = kFree, .model = model};
}
RankReport loaded(const char* node, int local_size, const char* model = "a") {
  return {.node = node, .local_size = local_size, .available = kFree, .cache_tokens = 96, .model = model};
}

std::vector<std::int64_t> shares_of(const std::vector<RankReport>& reports) {
  std::vector<std::int64_t> shares;
  for (const RankMemory& memory : memory_shares(reports)) shares.push_back(memory.available.value);
  return shares;
}

TEST(RankReport, SurvivesItsJourney) {
  const RankReport got = decode_report(encode(loaded("spark-2", 3, "f00d")));
  EXPECT_EQ(got.node, "spark-2");
  EXPECT_EQ(got.local_size, 3);
  EXPECT_EQ(got.available, kFree);
  EXPECT_EQ(got.cache_tokens, 96);
  EXPECT_EQ(got.model, "f00d");
}

TEST(RankReport, MemoryIsSharedByTheRanksOfANode) {
  EXPECT_EQ(shares_of({newcomer("a", 2), newcomer("a", 2), newcomer("b", 1)}),
            (std::vector<std::int64_t>{kFree / 2, kFree / 2, kFree}));
  EXPECT_EQ(memory_shares({newcomer("a", 2), newcomer("a", 2)})[1].of_node, Bytes{kFree});
}

TEST(RankReport, AfterADeathWhatIsLeftIsForTheNewcomersAlone) {
  EXPECT_EQ(shares_of({loaded("a", 3), newcomer("a", 3), newcomer("a", 3)}),
            (std::vector<std::int64_t>{kMemoryUnknown, kFree / 2, kFree / 2}));
  EXPECT_EQ(shares_of({loaded("a", 2), newcomer("a", 2)})[1], kFree);
}

TEST(RankReport, MachinesOfOneNameAreStillSeveral) {
  EXPECT_EQ(shares_of({newcomer("localhost", 1), newcomer("localhost", 1)}), (std::vector<std::int64_t>{kFree, kFree}));
}

TEST(RankReport, AnotherModelIsRefusedByTheNameOfItsNode) {
  EXPECT_NO_THROW(check_same_model({newcomer("spark-1", 1), newcomer("spark-2", 1)}));
  EXPECT_ERROR(check_same_model({newcomer("spark-1", 1), newcomer("spark-2", 1, "b")}), ErrorCode::kConflict,
               "spark-2 holds another model than spark-1", "its files on spark-2 were replaced");
  EXPECT_ERROR(check_same_model({newcomer("vm", 2), newcomer("vm", 2, "b")}), ErrorCode::kConflict,
               "rank 1 holds another model than rank 0, both on vm", "start again");
  EXPECT_ERROR(check_same_model({newcomer("spark-1", 1, "b"), loaded("spark-2", 1)}), ErrorCode::kConflict,
               "spark-1 holds another model than spark-2", "copy the model's folder")
      << "those that have loaded are right";
}

}  // namespace
}  // namespace yoke::engine
