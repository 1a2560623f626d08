#include "yoke/weights/quantization.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::weights {
namespace {

Quantization read_config(const std::string& config, const std::string& legacy = "null") {
  return {parse_json(config, "config.json"), parse_json(legacy, "quantize_config.json")};
}

bool is_meant(const std::string& module, const std::vector<std::string>& targets) {
  ModulePatternWork work;
  return ModuleTargets(targets, {.where = "config.json"}, work).include(module, work);
}

TEST(Quantization, TargetsAreNamesPatternsOrTheClass) {
  EXPECT_TRUE(is_meant("a.q_proj", {"Linear"}));
  EXPECT_TRUE(is_meant("lm_head", {"x", "lm_head"}));
  EXPECT_TRUE(is_meant("model.layers.3.mlp.gate", {R"(re:.*\.gate$)"}));
  EXPECT_FALSE(is_meant("model.layers.3.mlp.gate_proj", {R"(re:.*\.gate$)"}));
  EXPECT_FALSE(is_meant("model.lm_head", {"re:lm_head"})) << "a pattern begins where the name begins";
}

// The message of the Error that asking about a module with these targets ends with, with its code.
std::string refusal(const std::string& module, const std::vector<std::string>& targets) {
  try {
    is_meant(module, targets);
  } catch (const Error& error) {
    return fmt::format("{}: {}", info(error.code()).name, error.message());
  }
  return "none";
}

TEST(Quantization, APatternFromAFileCannotCrashTheProgram) {
  using testing::HasSubstr;
  const std::string letters(200'000, 'a');
  EXPECT_THAT(refusal("a", {"re:("}), HasSubstr("config.json: the pattern '(' cannot be used"));
  EXPECT_THAT(refusal("a", {"re:" + letters}), HasSubstr("has 200000 bytes, more than the 1024 that yoke reads"));
  const std::string nested = std::string(500, '(') + "a" + std::string(500, ')');
  EXPECT_THAT(refusal("a", {"re:" + nested}), HasSubstr("cannot be used"));
}

TEST(Quantization, APatternFromAFileTakesNoExponentialTime) {
  EXPECT_THAT(refusal(std::string(60, 'a') + "b", {"re:(a+)+$"}), testing::StartsWith("exhausted"));
}

TEST(Quantization, ManyPatternsAreRefused) {
  EXPECT_EQ(refusal("lm_head", std::vector<std::string>(1000, "re:x")), "none");
  EXPECT_THAT(refusal("lm_head", std::vector<std::string>(1001, "re:x")),
              testing::HasSubstr("more than 1000 patterns"));
}

TEST(Quantization, AllModulesTogetherHaveALimitOfTime) {
  ModulePatternWork work;
  // Each takes about 20 ms, far under the limit of one match.
  const ModuleTargets slow({"re:(?:a|a)*[bc]"}, {.where = "config.json"}, work);
  const std::string module(20, 'a');
  try {
    for (int i = 0; i < 100'000; ++i) slow.include(module, work);
    FAIL() << "100,000 modules took " << work.nanoseconds << " ns";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted) << error.message();
  }
}

TEST(Quantization, EachGroupHasItsOwnScheme) {
  const Quantization q =
      read_config(R"({"quantization_config":{"quant_method":"compressed-tensors","format":"mixed-precision",
    "config_groups":{"group_0":{"targets":["re:.*self_attn.*"],"weights":{"num_bits":8,"strategy":"channel"}},
    "group_1":{"targets":["Linear"],"weights":{"num_bits":4,"group_size":128,"symmetric":false}}}}})");
  EXPECT_EQ(q.scheme("model.self_attn.q").bits, 8);
  EXPECT_EQ(q.scheme("model.mlp.up").group_size, 128);
  EXPECT_EQ(q.scheme("model.mlp.up").symmetric, false);
  EXPECT_FALSE(q.ignores("model.mlp.up"));
}

TEST(Quantization, OldNestedAndAbsentSectionsAreRead) {
  EXPECT_EQ(read_config("{}").method(), "");
  EXPECT_EQ(read_config(R"({"quantization_config":null})").method(), "");
  const Quantization nested =
      read_config(R"({"compression_config":{"sparsity_config":{},"quantization_config":{"ignore":["lm_head"]}}})");
  EXPECT_EQ(nested.method(), "compressed-tensors");
  EXPECT_TRUE(nested.ignores("lm_head"));
  const Quantization gptq = read_config("{}", R"({"bits":4,"group_size":-1})");
  EXPECT_EQ(gptq.method(), "gptq");
  EXPECT_EQ(gptq.scheme("x").group_size, std::nullopt);
  EXPECT_EQ(gptq.gptq_zero_offset(), 1);
}

TEST(Quantization, BlocksAreTwoSizesInEitherForm) {
  const auto block = [](const std::string& structure) {
    return read_config(R"({"quantization_config":{"config_groups":{"g":{"targets":["Linear"],"weights":{"num_bits":8,)"
                       R"("block_structure":)" +
                       structure + "}}}}}")
        .scheme("x")
        .block;
  };
  const std::pair<std::int64_t, std::int64_t> wide{64, 128};
  EXPECT_EQ(block("[64, 128]"), wide);
  EXPECT_EQ(block(R"("64x128")"), wide);
  for (const char* wrong : {R"("64")", R"("64xx")", R"("0x8")", R"("a x b")", "64"})
    EXPECT_ERROR(block(wrong), ErrorCode::kInvalid, "block_structure");
}

TEST(Quantization, WhatIsNotReadIsReported) {
  EXPECT_ERROR(read_config(R"({"quantization_config":{"quant_method":"awq"}})"), ErrorCode::kUnsupported,
               "quantized by 'awq'");
  EXPECT_ERROR(read_config(R"({"quantization_config":{"quant_method":"gptq","group_size":0}})"), ErrorCode::kInvalid,
               "group_size");
  EXPECT_ERROR(read_config(R"({"quantization_config":{"quant_method":"gptq","bits":"four"}})"), ErrorCode::kInvalid,
               "bits: this must be a whole number, not 'four'");
  EXPECT_ERROR(read_config(R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[0,1]}})"),
               ErrorCode::kInvalid, "weight_block_size");
}

}  // namespace
}  // namespace yoke::weights
