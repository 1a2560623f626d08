#include "yoke/text/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/rng_testing.h"
#include "yoke/text/sampling_testing.h"

namespace yoke::text {
namespace {

std::vector<float> random_logits(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> logits;
  while (logits.size() < count) logits.push_back(static_cast<float>(3 * random.normal()));
  return logits;
}

SampledToken sample_from(const std::vector<float>& logits, const SamplingOptions& options, std::uint64_t position = 0,
                         const TokenCounts& counts = {}) {
  return sample(slice_head(logits, 0, options, counts), options, position);
}

// How often each token is drawn over many positions.
std::map<TokenId, double> shares(const std::vector<float>& logits, const SamplingOptions& options, int draws = 20000) {
  std::map<TokenId, double> counts;
  const HeadSlice head = slice_head(logits, 0, options, {});
  for (int i = 0; i < draws; ++i) counts[sample(head, options, static_cast<std::uint64_t>(i)).id] += 1.0 / draws;
  return counts;
}

TEST(Sampling, GreedyTakesTheBestAndOfEqualsTheFirst) {
  EXPECT_EQ(sample_from({1, 5, 5, 2}, {.temperature = 0}).id, 1);
  EXPECT_EQ(sample_from({-3}, {.temperature = 0}).id, 0);
}

TEST(Sampling, FollowsTheProbabilities) {
  const std::vector<float> logits = {0.0F, std::log(2.0F), std::log(5.0F)};
  const auto drawn = shares(logits, {.seed = 7});
  // Five deviations of a share p over 20,000 draws: 5 * sqrt(p (1 - p) / 20000), below 0.018.
  EXPECT_NEAR(drawn.at(0), 1.0 / 8, 0.018);
  EXPECT_NEAR(drawn.at(1), 2.0 / 8, 0.018);
  EXPECT_NEAR(drawn.at(2), 5.0 / 8, 0.018);
  const auto cold = shares(logits, {.temperature = 0.5F, .seed = 7});
  EXPECT_NEAR(cold.at(2), 25.0 / 30, 0.018) << "a temperature of 1/2 squares the ratios";
}

TEST(Sampling, DependsOnSeedAndPositionOnly) {
  const std::vector<float> logits = random_logits(1000, 1);
  const SamplingOptions options{.temperature = 2, .seed = 11};
  std::vector<TokenId> first;
  for (std::uint64_t position = 0; position < 50; ++position)
    first.push_back(sample_from(logits, options, position).id);
  for (std::uint64_t position = 50; position-- > 0;)
    EXPECT_EQ(sample_from(logits, options, position).id, first[position]);
  SamplingOptions other = options;
  other.seed = 12;
  int different = 0;
  for (std::uint64_t position = 0; position < 50; ++position)
    different += sample_from(logits, other, position).id != first[position];
  EXPECT_GT(different, 25);
}

TEST(Sampling, IsTheSameOnHoweverManyRanks) {
  const std::size_t vocabulary = 2003;
  TokenCounts counts;
  counts.add_prompt(std::vector<TokenId>{5, 700, 1999});
  counts.add_answer(700);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = random_logits(vocabulary, seed);
    for (const SamplingOptions& options :
         {SamplingOptions{.temperature = 0, .logprobs = 3}, SamplingOptions{.temperature = 1.5F, .seed = seed},
          SamplingOptions{.top_p = 0.7F, .seed = seed, .logprobs = 5}, SamplingOptions{.temperature = 3, .top_k = 300},
          SamplingOptions{
              .min_p = 0.1F, .repetition_penalty = 1.3F, .frequency_penalty = 1, .logit_bias = {{9, 8.0F}}}}) {
      const SampledToken whole = sample_from(logits, options, 42, counts);
      for (const std::size_t ranks : {2U, 3U, 7U}) {
        std::vector<HeadSlice> slices;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          const std::size_t begin = vocabulary * rank / ranks;
          const std::size_t end = vocabulary * (rank + 1) / ranks;
          slices.push_back(
              slice_head(std::span(logits).subspan(begin, end - begin), static_cast<TokenId>(begin), options, counts));
          EXPECT_LE(slices.back().best.size(), kMaxCandidates);
        }
        const SampledToken split = sample(merge_slices(slices), options, 42);
        EXPECT_EQ(split.id, whole.id);
        EXPECT_NEAR(split.logprob, whole.logprob, 1e-5);
        ASSERT_EQ(split.top.size(), whole.top.size());
        for (std::size_t i = 0; i < split.top.size(); ++i) EXPECT_EQ(split.top[i].id, whole.top[i].id);
      }
    }
  }
}

TEST(Sampling, TopKTopPAndMinPLeaveWhatTheySay) {
  const std::vector<float> logits = {std::log(0.4F), std::log(0.3F), std::log(0.2F), std::log(0.1F)};
  const auto kept = [&](SamplingOptions options) { return shares(logits, options).size(); };
  EXPECT_EQ(kept({.top_k = 1}), 1U);
  EXPECT_EQ(kept({.top_k = 3}), 3U);
  EXPECT_EQ(kept({.top_p = 0.39F}), 1U);
  EXPECT_EQ(kept({.top_p = 0.5F}), 2U);
  EXPECT_EQ(kept({.top_p = 0.95F}), 4U);
  EXPECT_EQ(kept({.min_p = 0.6F}), 2U);
  EXPECT_EQ(kept({.min_p = 1}), 1U);
  EXPECT_EQ(kept({.top_k = 2, .top_p = 0.5F}), 1U) << "top-p is of what top-k left: 0.4 of 0.7 reaches a half";
  EXPECT_EQ(kept({}), 4U);
}

TEST(Sampling, TopPCountsTokensThatAreNoCandidates) {
  // The best has a fifth of all; of the candidates alone it would have more.
  std::vector<float> logits(4001, 0.0F);
  logits[0] = std::log(1000.0F);
  const HeadSlice head = slice_head(logits, 0, {.top_p = 0.19F}, {});
  EXPECT_EQ(head.best.size(), kMaxCandidates);
  EXPECT_EQ(shares(logits, {.top_p = 0.19F}, 200).size(), 1U);
  EXPECT_GT(shares(logits, {.top_p = 0.25F}, 5000).size(), 1U);
}

TEST(Sampling, PenaltiesLookAtPromptAndAnswer) {
  TokenCounts counts;
  counts.add_prompt(std::vector<TokenId>{0});
  counts.add_answer(1);
  counts.add_answer(1);
  const auto logits_after = [&](const SamplingOptions& options) {
    std::map<TokenId, float> logits;
    for (const Candidate& candidate : slice_head(std::vector<float>{2, 2, -2, 2}, 0, options, counts).best) {
      logits[candidate.id] = candidate.logit;
    }
    return logits;
  };
  const auto repeated = logits_after({.repetition_penalty = 2});
  EXPECT_EQ(repeated, (std::map<TokenId, float>{{0, 1.0F}, {1, 1.0F}, {2, -2.0F}, {3, 2.0F}}));
  counts.add_answer(2);
  EXPECT_EQ(logits_after({.repetition_penalty = 2}).at(2), -4.0F) << "a negative logit becomes smaller too";
  const auto often = logits_after({.frequency_penalty = 0.5F, .presence_penalty = 0.25F});
  EXPECT_EQ(often, (std::map<TokenId, float>{{0, 2.0F}, {1, 0.75F}, {2, -2.75F}, {3, 2.0F}}));
}

TEST(Sampling, ABiasCanForceAndForbid) {
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(sample_from({1, 2, 3}, {.temperature = 0, .logit_bias = {{0, 100.0F}}}).id, 0);
  EXPECT_EQ(sample_from({1, 2, 3}, {.temperature = 0, .logit_bias = {{2, kForbidden}}}).id, 1);
  EXPECT_EQ(shares({1, 2, 3}, {.logit_bias = {{2, kForbidden}, {1, kForbidden}}}).size(), 1U);
  EXPECT_ERROR(sample_from({1}, {.logit_bias = {{0, kForbidden}}}), ErrorCode::kInvalid, "no token is allowed here");
}

TEST(Sampling, LogprobsAreOfTheModelAsItIs) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const SampledToken forced = sample_from(logits, {.temperature = 0.1F, .logit_bias = {{2, 100.0F}}, .logprobs = 2});
  EXPECT_EQ(forced.id, 2);
  EXPECT_NEAR(forced.logprob, std::log(0.2), 1e-6);
  ASSERT_EQ(forced.top.size(), 2U);
  EXPECT_EQ(forced.top[0].id, 0);
  EXPECT_NEAR(forced.top[1].logprob, std::log(0.3), 1e-6);
  EXPECT_TRUE(sample_from(logits, {.logprobs = 0}).top.empty());
}

TEST(Sampling, TakesExtremeLogitsAndRefusesAHeadWithoutTokens) {
  EXPECT_ERROR(sample(HeadSlice{}, {}, 0), ErrorCode::kInvalid, "no token is allowed here");
  EXPECT_EQ(sample_from({1e30F, -1e30F, -std::numeric_limits<float>::infinity()}, {.temperature = 0.01F}).id, 0);
}

TEST(Sampling, RefusesOptionsThatMakeNoSense) {
  EXPECT_NO_THROW(check_sampling({}, 10));
  struct Wrong {
    SamplingOptions options;
    const char* words;
  };
  for (const Wrong& wrong : {Wrong{{.temperature = -1}, "temperature must be from 0 to 100"},
                             {{.temperature = std::nanf("")}, "temperature must be from 0 to 100"},
                             {{.top_k = -1}, "top_k must be 0 or more"},
                             {{.top_p = 0}, "top_p must be above 0"},
                             {{.top_p = 1.1F}, "at most 1"},
                             {{.min_p = 2}, "min_p must be from 0 to 1"},
                             {{.repetition_penalty = 0}, "repetition penalty must be above 0"},
                             {{.frequency_penalty = std::nanf("")}, "frequency penalty must be from -100"},
                             {{.logit_bias = {{10, 1.0F}}}, "token 10, but the vocabulary has 10 ids"},
                             {{.logit_bias = {{1, std::nanf("")}}}, "a logit bias must be a number"},
                             {{.logprobs = 21}, "from 0 to 20"}}) {
    EXPECT_ERROR(check_sampling(wrong.options, 10), ErrorCode::kInvalid, wrong.words);
  }
}

}  // namespace
}  // namespace yoke::text
