#include "yoke/engine/plan.h"

#include <gtest/gtest.h>

#include "yoke/comm/local/local.h"
#include "yoke/comm/rank_threads_testing.h"
#include "yoke/engine/head_block.h"

namespace yoke {
namespace {

StepPlan plan_with_prompt(std::size_t tokens) {
  StepPlan plan;
  plan.released = {3, 4};
  plan.rows = {{.id = 7, .fresh = 12}, {.id = 8, .fresh = 1, .made = 99}};
  plan.admitted = {{.id = 7, .prompt = std::vector<TokenId>(tokens, 1234), .answer_most = 5}};
  plan.admitted[0].sampling.seed = ~std::uint64_t{0};
  return plan;
}

TEST(PlanTest, IsTheSameOnAllRanks) {
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{100'000}}) {  // in one message, and in two
    auto ranks = make_local(3);
    const StepPlan own = plan_with_prompt(tokens);
    const auto lines = run_on_threads(ranks, [&](Communicator& comm) {
      const StepPlan got = share_plan(comm, comm.rank() == 0 ? std::optional(own) : std::nullopt);
      return std::vector<std::string>{encode(got)};
    });
    EXPECT_EQ(lines, std::vector<std::string>(3, encode(own)));
  }
}

TEST(HeadBlock, ComesBackAsItWas) {
  SamplingOptions options{.temperature = 1, .logprobs = 2};
  HeadSlice slice;
  for (TokenId id = 0; id < 256; ++id) slice.best.push_back({id, 1.5F / static_cast<float>(id + 1), -2.5F});
  slice.likeliest = {{5, 1, 2}, {6, 3, 4}};
  slice.mass = {.max = 1.25, .sum = 17.0 / 3};
  slice.raw_mass = {.max = -1e300, .sum = 1e-300};
  std::vector<std::int32_t> words(head_words(options));
  write_head(slice, words);
  const auto back = read_head(words);
  ASSERT_TRUE(back.has_value());
  ASSERT_EQ(back->best.size(), 256U);
  EXPECT_EQ(back->best[255].logit, slice.best[255].logit);
  EXPECT_EQ(back->likeliest[1].raw, 4);
  EXPECT_EQ(back->mass.sum, slice.mass.sum);
  EXPECT_EQ(back->raw_mass.max, slice.raw_mass.max);
  write_head(std::nullopt, words);
  EXPECT_FALSE(read_head(words).has_value());
}

}  // namespace
}  // namespace yoke
