#include "yoke/engine/fit.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"

namespace yoke::engine {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A model of 1600 MiB that can be split in 1, 2 and 4.
FitQuestion question_for(std::vector<RankMemory> ranks) {
  return {.ranks = std::move(ranks),
          .tokens_wanted = 8192,
          .tokens_min = 256,
          .rank_counts = {1, 2, 4},
          .need = [](int count) {
            return RankNeed{.weights = Bytes{1600 * kMiB / count},
                            .work_space = Bytes{10 * kMiB},
                            .cache_per_token = Bytes{kMiB / 4 / count}};
          }};
}

RankMemory node(const char* name, std::int64_t mib) { return {name, Bytes{mib * kMiB}, Bytes{mib * kMiB}}; }

TEST(Fit, TheCacheIsAsLargeAsWantedWhereThereIsRoom) {
  EXPECT_EQ(fit_cache(question_for({node("spark-1", 8000)})), 8192);
}

TEST(Fit, TheNodeWithLeastRoomDecides) {
  // Of 1160 MiB, 32 MiB and a 32nd stay free; 800 MiB are weights, 10 MiB work space; the rest in tokens of 128 KiB.
  const std::int64_t tokens = fit_cache(question_for({node("spark-1", 8000), node("spark-2", 1152)}));
  EXPECT_EQ(tokens, (1152 - 32 - 36 - 800 - 10) * 8);
}

TEST(Fit, RefusesNamingTheNodeAndWhatWouldDo) {
  try {
    fit_cache(question_for({node("spark-1", 1200)}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
    EXPECT_NE(error.message().find("spark-1 has 1.17 GiB available"), std::string::npos) << error.message();
    EXPECT_EQ(error.hint(), "2 nodes of this kind, one rank on each, would do");
  }
}

TEST(Fit, AdviceIsForOneRankOnEachNode) {
  // Two ranks share a node of 1000 MiB; alone each would have all of it, which is enough for half of the model.
  const RankMemory half{"spark-1", Bytes{500 * kMiB}, Bytes{1000 * kMiB}};
  try {
    fit_cache(question_for({half, half}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("spark-1 has 500 MiB available for each of its ranks"), std::string::npos)
        << error.message();
    EXPECT_EQ(error.hint(), "2 nodes of this kind, one rank on each, would do");
  }
}

TEST(Fit, SaysSoWhereNoNumberOfNodesWouldDo) {
  try {
    fit_cache(question_for({node("small", 100), node("large", 8000)}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("small has 100 MiB"), std::string::npos) << error.message();
    EXPECT_EQ(error.hint().find("would do"), std::string::npos) << error.hint();
  }
}

TEST(Fit, ACacheThatNobodyAskedForIsModest) {
  const RankNeed small{.weights = Bytes{800 * kMiB}, .work_space = {}, .cache_per_token = Bytes{64 << 10}};
  EXPECT_EQ(default_cache_tokens(small, 2048), 2048) << "the whole context where it is short";
  EXPECT_EQ(default_cache_tokens(small, 131'072), 16'384) << "1 GiB";
  const RankNeed large{.weights = Bytes{40'000 * kMiB}, .work_space = {}, .cache_per_token = Bytes{kMiB}};
  EXPECT_EQ(default_cache_tokens(large, 131'072), 9216) << "a quarter of the weights";
  const RankNeed wide{.weights = Bytes{kMiB}, .work_space = {}, .cache_per_token = Bytes{64 * kMiB}};
  EXPECT_EQ(default_cache_tokens(wide, 131'072), 1024) << "but some";
}

}  // namespace
}  // namespace yoke::engine
