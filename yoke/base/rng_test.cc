#include "yoke/base/rng_testing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace yoke {
namespace {

// The known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsAPureFunctionOfSeedPositionAndStream) {
  EXPECT_EQ(philox(7, 1), philox(7, 1));
  EXPECT_NE(philox(7, 1), philox(7, 2));
  EXPECT_NE(philox(7, 1), philox(8, 1));
  EXPECT_NE(philox(7, 1, 0), philox(7, 1, 1));
  EXPECT_NE(philox(7, 1ULL << 32), philox(7, 1));
}

TEST(Random, UniformNumbersStayBelowOneAndFillTheRange) {
  EXPECT_LT(to_unit_float(0xffffffff), 1.0F);
  EXPECT_LT(to_unit_double(0xffffffff, 0xffffffff), 1.0);
  EXPECT_EQ(to_unit_double(0, 0), 0.0);
  Random random(1);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) sum += random.uniform();
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);  // seven deviations: 7 * 0.289 / 100
}

TEST(Random, BelowCoversEveryValueEvenly) {
  Random random(2);
  std::array<int, 7> counts{};
  for (int i = 0; i < 7000; ++i) ++counts[random.below(counts.size())];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 200);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  Random random(3);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.05);
  EXPECT_NEAR(squares / 20000, 1, 0.08);
}

}  // namespace
}  // namespace yoke
