#include "yoke/engine/plan.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/comm/local/local.h"
#include "yoke/comm/rank_threads_testing.h"

namespace yoke::engine {
namespace {

StepPlan plan_with_prompt(std::size_t tokens) {
  StepPlan plan;
  plan.released = {3, 4};
  plan.rows = {{.slot = 7, .fresh = 12}, {.slot = 8, .fresh = 1, .made = 99}};
  plan.grants = {{.slot = 7, .pages = {5, 1, 3}}};
  plan.admitted = {
      {.slot = 7, .cached = 32, .request = {.prompt = std::vector<text::TokenId>(tokens, 1234), .answer_max = 5}}};
  plan.admitted[0].request.sampling.seed = ~std::uint64_t{0};
  plan.admitted[0].request.sampling.logit_bias = {{5, -1.5F}};
  return plan;
}

StepPlan decoding(std::int32_t rows) {
  StepPlan plan;
  for (std::int32_t slot = 0; slot < rows; ++slot) plan.rows.push_back({.slot = slot, .fresh = 1, .made = slot});
  return plan;
}

TEST(PlanTest, IsTheSameOnAllRanks) {
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{100'000}}) {  // in one message, and in two
    auto ranks = comm::local::make_local(3);
    const StepPlan own = plan_with_prompt(tokens);
    const auto lines = comm::run_on_threads(ranks, [&](comm::Communicator& comm) {
      PlanSharing sharing;
      const StepPlan got = sharing.share(comm, comm.rank() == 0 ? std::optional(own) : std::nullopt);
      EXPECT_EQ(sharing.messages(), tokens == 1 ? 1 : 2);
      return std::vector<std::string>{encode(got)};
    });
    EXPECT_EQ(lines, std::vector<std::string>(3, encode(own)));
  }
}

TEST(PlanTest, APlanOfDecodingIsOneMessageAlsoAfterALongerOne) {
  auto ranks = comm::local::make_local(2);
  run_on_threads(ranks, [&](comm::Communicator& comm) {
    PlanSharing sharing;
    const auto share = [&](const StepPlan& plan) {
      sharing.share(comm, comm.rank() == 0 ? std::optional(plan) : std::nullopt);
      return sharing.messages();
    };
    EXPECT_EQ(share(decoding(60)), 1);
    EXPECT_EQ(share(decoding(200)), 2) << "longer than any before";
    EXPECT_EQ(share(decoding(200)), 1) << "the first message has grown";
    return std::vector<std::string>{};
  });
}

TEST(PlanTest, ARowTakesSixteenBytes) { EXPECT_EQ(encode(decoding(64)).size() - encode(decoding(0)).size(), 64U * 16); }

TEST(PlanTest, APlanThatLiesIsRefused) {
  const std::string good = encode(plan_with_prompt(5));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_ERROR(decode_plan(std::string_view(good).substr(0, size)), ErrorCode::kInvalid, "a plan");
  }
  EXPECT_ERROR(decode_plan(good + "x"), ErrorCode::kInvalid, "bytes too many");
  std::string many = good;
  many[20] = '\xff';  // claims 255 and more rows
  EXPECT_ERROR(decode_plan(many), ErrorCode::kInvalid, "a plan");
  std::string other = good;
  other[0] = 'x';
  EXPECT_ERROR(decode_plan(other), ErrorCode::kInvalid, "another version");
}

}  // namespace
}  // namespace yoke::engine
