#include "yoke/ops/ref/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace yoke {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Softmax, SumsToOneAlsoWhereExponentialsWouldOverflow) {
  std::vector<float> row = {1000, 999, -1000, -kInfinity};
  ref::softmax(row);
  EXPECT_NEAR(row[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(row[0] + row[1], 1, 1e-6);
  EXPECT_EQ(row[3], 0.0F);
}

TEST(LogSumExp, HoldsForOneNoneAndInfinities) {
  EXPECT_EQ(ref::log_sum_exp(std::vector<float>{5}), 5.0);
  EXPECT_EQ(ref::log_sum_exp({}), -kInfinity);
  EXPECT_EQ(ref::log_sum_exp(std::vector<float>{-kInfinity, -kInfinity}), -kInfinity);
  EXPECT_NEAR(ref::log_sum_exp(std::vector<float>{0, 0, 0}), std::log(3.0), 1e-12);
}

TEST(Argmax, IsTheFirstOfTheLargest) {
  EXPECT_EQ(ref::argmax(std::vector<float>{1, 3, 2, 3}), 1);
  EXPECT_EQ(ref::argmax({}), -1);
}

}  // namespace
}  // namespace yoke
