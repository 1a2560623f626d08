#include "yoke/base/check.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

TEST(CheckDeathTest, PrintsConditionValuesPlaceAndRankAndAborts) {
  EXPECT_DEATH(
      {
        set_check_rank(3);
        const int rows = 4;
        YOKE_CHECK(rows == 5, "{} rows", rows);
      },
      "check failed: rows == 5: 4 rows \\[.*check_test.cc:[0-9]+, .*, rank 3\\]");
}

TEST(CheckDeathTest, ComparisonsPrintBothSides) { EXPECT_DEATH(YOKE_CHECK_LT(7, 7), "7 < 7: 7 against 7"); }

TEST(Check, EvaluatesItsOperandsOnce) {
  int calls = 0;
  YOKE_CHECK_EQ(++calls, 1);
  YOKE_CHECK(++calls == 2);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace yoke
