#include "yoke/plan/money.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"

namespace yoke::plan {
namespace {

using testing::HasSubstr;

// A plan with round numbers: 100 tokens/s at 1000 W.
Plan round_plan(Goal goal) {
  Plan plan{.goal = goal, .fits = true};
  plan.layouts.push_back({.score = 100});
  plan.estimates = {{.name = "decode, one request", .value = 100, .low = 50, .high = 200, .unit = "tok/s"},
                    {.name = "training", .value = 100, .low = 80, .high = 125, .unit = "tok/s"},
                    {.name = "seconds per image, 2 GPUs", .value = 0.01, .low = 0.005, .high = 0.02, .unit = "s"},
                    {.name = "power", .value = 1000, .low = 500, .high = 2000, .unit = "W"}};
  return plan;
}

TEST(Money, AnHourIsHardwareOverItsYearsAndElectricity) {
  EXPECT_DOUBLE_EQ(hourly_cost({.kwh = 0.3}, 1000), 0.3);
  EXPECT_DOUBLE_EQ(hourly_cost({.hardware = 8766, .years = 2}, 1000), 0.5);
  EXPECT_DOUBLE_EQ(hourly_cost({.hardware = 8766, .years = 2, .busy = 0.5}, 1000), 1.0) << "idle hours cost too";
  EXPECT_DOUBLE_EQ(hourly_cost({.kwh = 0.3, .hardware = 8766, .years = 2}, 1000), 0.8);
  EXPECT_DOUBLE_EQ(hourly_cost({.cloud_hour = 6, .busy = 0.5}, 1000), 12);
}

TEST(Money, AMillionTokensTakeTheTimeOfTheRateAndItsInterval) {
  Plan plan = round_plan(Goal::kServe);
  add_money(plan, {.prompt = 1024}, {.cloud_hour = 3.6, .currency = "EUR"});
  const Estimate& cost = plan.estimates.back();
  EXPECT_EQ(cost.name, "cost per million tokens of answers, prompts of 1024 read");
  EXPECT_DOUBLE_EQ(cost.value, 10) << "10,000 s at 3.6 an hour";
  EXPECT_NEAR(cost.low, 5, 1e-9);
  EXPECT_NEAR(cost.high, 20, 1e-9) << "the interval of the rate";
  EXPECT_EQ(cost.unit, "EUR");
  Plan energy = round_plan(Goal::kServe);
  add_money(energy, {}, {.kwh = 0.36});
  EXPECT_DOUBLE_EQ(energy.estimates.back().value, 1);
  EXPECT_NEAR(energy.estimates.back().high, std::exp(std::sqrt(2.0) * std::log(2.0)), 1e-9)
      << "of rate and power together";
  EXPECT_THAT(energy.estimates.back().provenance, HasSubstr("0.36 units per kWh at 1000 W"));
}

TEST(Money, ImagesAndTrainingRunsHaveTheirOwnFigures) {
  Plan draw = round_plan(Goal::kDraw);
  add_money(draw, {}, {.cloud_hour = 36});
  EXPECT_EQ(draw.estimates.back().name, "cost per image");
  EXPECT_DOUBLE_EQ(draw.estimates.back().value, 1e-4);
  Plan whole = round_plan(Goal::kDraw);
  whole.layouts.front().layout.replicas = 8;
  add_money(whole, {}, {.cloud_hour = 36});
  EXPECT_DOUBLE_EQ(whole.estimates.back().value, 1e-4 / 8) << "eight images at once";
  Plan train = round_plan(Goal::kTrain);
  add_money(train, {.tokens = 3.6e6}, {.cloud_hour = 2});
  EXPECT_EQ(train.estimates.back().name, "cost of the training run");
  EXPECT_DOUBLE_EQ(train.estimates.back().value, 20) << "ten hours";
}

TEST(Money, NothingIsAddedWithoutPricesAndContradictionsAreRefused) {
  Plan plan = round_plan(Goal::kServe);
  add_money(plan, {}, {});
  EXPECT_EQ(plan.estimates.size(), 4U);
  plan.fits = false;
  add_money(plan, {}, {.kwh = 0.3});
  EXPECT_EQ(plan.estimates.size(), 4U) << "what does not run costs nothing";
  EXPECT_ERROR(check_prices({.kwh = 0.3, .cloud_hour = 2}), ErrorCode::kUsage, "--cloud-price holds");
  EXPECT_ERROR(check_prices({.hardware = 8000}), ErrorCode::kUsage, "needs the years");
  EXPECT_ERROR(check_prices({.years = 3}), ErrorCode::kUsage, "--years needs --hardware-price");
}

}  // namespace
}  // namespace yoke::plan
