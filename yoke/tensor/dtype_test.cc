#include "yoke/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace yoke::tensor {
namespace {

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(to_float(to_bf16(1.0F)), 1.0F);
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F).bits, to_bf16(1.0F).bits) << "a tie goes to the even neighbour";
  EXPECT_EQ(to_float(to_bf16(1.0F + 3 * 0x1p-8F)), 1.0F + 0x1p-6F);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(to_float(to_bf16(std::numeric_limits<float>::max()))));
}

TEST(F16, EveryValueSurvivesTheWayThroughAFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(value))) continue;
    EXPECT_EQ(to_f16(to_float(value)).bits, bits);
  }
}

TEST(F16, EveryRoundingIsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = to_float(F16{static_cast<std::uint16_t>(bits)});
    const float high = to_float(F16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;  // exact in a float
    EXPECT_EQ(to_f16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(to_f16(std::nextafter(middle, 0.0F)).bits, bits);
    EXPECT_EQ(to_f16(std::nextafter(middle, 1e9F)).bits, bits + 1);
  }
  EXPECT_EQ(to_f16(65519.99F).bits, 0x7bffU);
  EXPECT_EQ(to_f16(65520.0F).bits, 0x7c00U);
  EXPECT_EQ(to_f16(-1e-9F).bits, 0x8000U);
}

TEST(F8E4m3, HoldsTheValuesOfTheSpecification) {
  EXPECT_EQ(to_float(F8E4m3{0x00}), 0.0F);
  EXPECT_EQ(to_float(F8E4m3{0x01}), 0x1p-9F);
  EXPECT_EQ(to_float(F8E4m3{0x08}), 0x1p-6F);
  EXPECT_EQ(to_float(F8E4m3{0x38}), 1.0F);
  EXPECT_EQ(to_float(F8E4m3{0x7e}), 448.0F);
  EXPECT_EQ(to_float(F8E4m3{0xfe}), -448.0F);
  EXPECT_TRUE(std::isnan(to_float(F8E4m3{0x7f})));
  EXPECT_TRUE(std::isnan(to_float(F8E4m3{0xff})));
}

TEST(F8E4m3, EveryValueSurvivesAndEveryRoundingIsToTheNearestWithTiesToEven) {
  for (unsigned bits = 0; bits < 0x7e; ++bits) {
    const float low = to_float(F8E4m3{static_cast<std::uint8_t>(bits)});
    const float high = to_float(F8E4m3{static_cast<std::uint8_t>(bits + 1)});
    EXPECT_EQ(to_f8e4m3(low).bits, bits);
    EXPECT_EQ(to_f8e4m3(-low).bits, bits | 0x80U);
    const float middle = (low + high) / 2;
    EXPECT_EQ(to_f8e4m3(middle).bits, bits % 2 == 0 ? bits : bits + 1) << middle;
    EXPECT_EQ(to_f8e4m3(std::nextafter(middle, 0.0F)).bits, bits);
    EXPECT_EQ(to_f8e4m3(std::nextafter(middle, 1e9F)).bits, bits + 1);
  }
  EXPECT_EQ(to_f8e4m3(1e30F).bits, 0x7eU) << "saturates";
  EXPECT_EQ(to_f8e4m3(std::numeric_limits<float>::infinity()).bits, 0x7eU);
}

TEST(DType, EveryOneHasANameAndASize) {
  for (const auto& [name, type] : enum_names(DType{})) {
    EXPECT_EQ(to_string(type), name);
    EXPECT_GT(size_of(type), 0U) << name;
  }
}

}  // namespace
}  // namespace yoke::tensor
