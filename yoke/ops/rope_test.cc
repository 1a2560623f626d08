#include "yoke/ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::ops {
namespace {

Rope read(const std::string& config, std::int64_t width = 8) {
  return rope_from_config(parse_json(config, "config.json"), width);
}

TEST(Rope, BothSpellingsOfTheConfigMeanTheSame) {
  const std::string scaling =
      R"("factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":256)";
  const Rope before = read(R"({"rope_theta":500000.0,"rope_scaling":{"type":"llama3",)" + scaling + "}}", 64);
  const Rope now = read(R"({"rope_parameters":{"rope_theta":500000.0,"rope_type":"llama3",)" + scaling + "}}", 64);
  EXPECT_EQ(before.inverse_frequencies, now.inverse_frequencies);
}

TEST(Rope, FrequenciesFollowTheFormulas) {
  const Rope plain = read("{}");
  ASSERT_EQ(plain.inverse_frequencies.size(), 4U);
  EXPECT_FLOAT_EQ(plain.inverse_frequencies[3], 1e-3F);
  EXPECT_FLOAT_EQ(read(R"({"rope_theta":16.0,"rope_scaling":null})").inverse_frequencies[2], 0.25F);
  EXPECT_FLOAT_EQ(read(R"({"rope_scaling":{"rope_type":"linear","factor":4.0}})").inverse_frequencies[0], 0.25F);
}

TEST(Rope, Llama3KeepsShortWavesAndStretchesLongOnes) {
  const Rope rope =
      read(R"({"rope_theta":10000.0,"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,
    "high_freq_factor":4.0,"original_max_position_embeddings":256}})",
           64);
  const Rope plain = read("{}", 64);
  EXPECT_EQ(rope.inverse_frequencies.front(), plain.inverse_frequencies.front());
  EXPECT_EQ(rope.inverse_frequencies.back(), plain.inverse_frequencies.back() / 8);
  int between = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const float ratio = plain.inverse_frequencies[i] / rope.inverse_frequencies[i];
    EXPECT_TRUE(ratio >= 1 && ratio <= 8);
    between += ratio > 1 && ratio < 8 ? 1 : 0;
  }
  EXPECT_GT(between, 0);
}

TEST(Rope, WhatIsUnknownOrIncompleteIsReported) {
  EXPECT_ERROR(read(R"({"rope_scaling":{"rope_type":"yarn","factor":4.0}})"), ErrorCode::kUnsupported,
               "rope scaling 'yarn'");
  EXPECT_ERROR(read(R"({"rope_scaling":{"rope_type":"linear"}})"), ErrorCode::kInvalid, "needs 'factor'");
  EXPECT_ERROR(read(R"({"rope_scaling":{"rope_type":"linear","factor":0}})"), ErrorCode::kInvalid,
               "rope_scaling.factor: this must be a positive number");
  EXPECT_ERROR(read(R"({"rope_theta":-1})"), ErrorCode::kInvalid, "rope_theta: this must be a positive number");
}

TEST(Rope, AnglesAreThoseOfThePosition) {
  EXPECT_FLOAT_EQ(rope_angle(read("{}"), 3, 0).cosine, std::cos(3.0F));
  EXPECT_FLOAT_EQ(rope_angle(read("{}"), 3, 1).sine, std::sin(0.3F));
}

}  // namespace
}  // namespace yoke::ops
