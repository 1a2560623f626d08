#include "yoke/weights/random_fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

namespace yoke::weights {
namespace {

std::vector<std::byte> filled(const Fill& fill, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  fill(0, out);
  return out;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};
Moments moments(const std::vector<double>& values) {
  Moments found;
  for (const double value : values) found.mean += value / static_cast<double>(values.size());
  for (const double value : values) found.deviation += (value - found.mean) * (value - found.mean);
  found.deviation = std::sqrt(found.deviation / static_cast<double>(values.size()));
  return found;
}

std::vector<Fill> every_fill() {
  const RandomWords words(1, "a");
  return {fill_int4(words),
          fill_fp4(words),
          fill_scales(tensor::DType::kBf16, 1, words),
          fill_scales(tensor::DType::kF8E4m3, 256, words),
          fill_normal(std::make_shared<NormalTable>(tensor::DType::kF32, 1), words),
          fill_normal(std::make_shared<NormalTable>(tensor::DType::kBf16, 1), words),
          fill_normal(std::make_shared<NormalTable>(tensor::DType::kF8E4m3, 1), words),
          fill_repeated({std::byte{1}, std::byte{2}})};
}

TEST(RandomFill, PiecesMakeTheWholeAlsoWhereItEndsWithinAStep) {
  for (const Fill& fill : every_fill()) {
    const std::size_t size = 5 * kFillStep + 6;
    const std::vector<std::byte> whole = filled(fill, size);
    for (const std::size_t cut : {kFillStep, 3 * kFillStep}) {
      std::vector<std::byte> pieces(size);
      fill(cut, std::span(pieces).subspan(cut));
      fill(0, std::span(pieces).first(cut));
      EXPECT_EQ(pieces, whole);
    }
  }
}

TEST(RandomFill, DependsOnTheSeedAndOnTheTensorsName) {
  const auto first = [](std::uint64_t seed, std::string_view name) { return RandomWords(seed, name)(0); };
  EXPECT_EQ(first(1, "a"), first(1, "a"));
  const std::set<std::uint64_t> words = {first(1, "a"), first(2, "a"), first(1, "b"), RandomWords(1, "a")(1)};
  EXPECT_EQ(words.size(), 4U);
}

TEST(RandomFill, Int4CodesAreEvenlyAroundZero) {
  std::vector<double> values;
  for (const std::byte byte : filled(fill_int4(RandomWords(1, "a")), 1 << 20)) {
    for (const unsigned code : {std::to_integer<unsigned>(byte) & 15U, std::to_integer<unsigned>(byte) >> 4}) {
      ASSERT_NE(code, 0U) << "-8 would make the mean differ from zero";
      values.push_back(static_cast<double>(code) - 8);
    }
  }
  const Moments found = moments(values);
  EXPECT_NEAR(found.mean, 0, 5 * kInt4Deviation / std::sqrt(values.size()));
  EXPECT_NEAR(found.deviation, kInt4Deviation, 0.01 * kInt4Deviation);
}

TEST(RandomFill, Fp4CodesHaveTheDeviationStated) {
  std::vector<double> values;
  for (const std::byte byte : filled(fill_fp4(RandomWords(1, "a")), 1 << 20)) {
    values.push_back(tensor::kE2m1Values[std::to_integer<unsigned>(byte) & 15U]);
    values.push_back(tensor::kE2m1Values[std::to_integer<unsigned>(byte) >> 4]);
  }
  EXPECT_NEAR(moments(values).mean, 0, 5 * kFp4Deviation / std::sqrt(values.size()));
  EXPECT_NEAR(moments(values).deviation, kFp4Deviation, 0.01 * kFp4Deviation);
}

TEST(RandomFill, NormalNumbersAreNormal) {
  constexpr double kDeviation = 0.02;
  const auto bytes =
      filled(fill_normal(std::make_shared<NormalTable>(tensor::DType::kF32, kDeviation), RandomWords(1, "a")), 4 << 20);
  std::vector<double> values;
  std::size_t within = 0;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &bytes[i], sizeof value);
    values.push_back(static_cast<double>(value));
    within += std::abs(value) < kDeviation ? 1 : 0;
  }
  EXPECT_NEAR(moments(values).mean, 0, 5 * kDeviation / std::sqrt(values.size()));
  EXPECT_NEAR(moments(values).deviation, kDeviation, 0.005 * kDeviation);
  EXPECT_NEAR(static_cast<double>(within) / static_cast<double>(values.size()), 0.6827, 0.003);
}

TEST(RandomFill, ANormalTableIsSymmetricAndAscending) {
  const NormalTable table(tensor::DType::kF32, 1);
  const auto at = [&](std::size_t i) {
    float value = 0;
    std::memcpy(&value, table.bits().data() + i * sizeof value, sizeof value);
    return value;
  };
  for (std::size_t i = 0; i < 65536; ++i) {
    ASSERT_EQ(at(i), -at(65535 - i)) << i;
    ASSERT_TRUE(i == 0 || at(i - 1) <= at(i)) << i;
  }
  EXPECT_NEAR(at(55705), 1.0364, 1e-3);  // the 85th percentile
  EXPECT_NEAR(normal_table_largest(), 4.3, 0.1);
}

TEST(RandomFill, ScalesStayNearTheirMiddle) {
  std::set<std::uint8_t> seen;
  for (const std::byte byte : filled(fill_scales(tensor::DType::kF8E4m3, 256, RandomWords(1, "a")), 4096)) {
    const float scale = tensor::to_float(tensor::F8E4m3{std::to_integer<std::uint8_t>(byte)});
    EXPECT_GE(scale, 192);
    EXPECT_LE(scale, 320);
    seen.insert(std::to_integer<std::uint8_t>(byte));
  }
  EXPECT_GT(seen.size(), 3U);
}

}  // namespace
}  // namespace yoke::weights
