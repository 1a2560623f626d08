#include "yoke/models/llama/config.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::models::llama {
namespace {

std::string config_text(const std::string& architecture, const std::string& more = "") {
  return R"({"architectures": [")" + architecture +
         R"("], "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 96,
         "vocab_size": 100)" +
         more + "}";
}
LlamaConfig read(const std::string& text) { return read_llama_config(parse_json(text, "config.json")); }

TEST(LlamaConfigTest, WhatIsAbsentIsAsTransformersHasIt) {
  const LlamaConfig config = read(config_text("LlamaForCausalLM"));
  EXPECT_EQ(config.Hkv, 8);
  EXPECT_EQ(config.D, 8);
  EXPECT_EQ(config.context, 2048);
  EXPECT_FLOAT_EQ(config.epsilon, 1e-6F);
  EXPECT_FALSE(config.tied);
  EXPECT_FALSE(config.qk_norm);
  EXPECT_EQ(config.qkv_bias, Bias::kNone);
  EXPECT_EQ(config.windows, std::vector<std::int64_t>(4, 0));
}

TEST(LlamaConfigTest, FamiliesDifferWhereTheyDo) {
  const LlamaConfig qwen2 = read(config_text("Qwen2ForCausalLM"));
  EXPECT_EQ(qwen2.qkv_bias, Bias::kGiven);
  EXPECT_EQ(qwen2.o_bias, Bias::kNone);
  const LlamaConfig qwen3 = read(config_text("Qwen3ForCausalLM"));
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_EQ(qwen3.D, 128);
  const LlamaConfig biased = read(config_text("LlamaForCausalLM", R"(, "attention_bias": true, "mlp_bias": true)"));
  EXPECT_EQ(biased.qkv_bias, Bias::kGiven);
  EXPECT_EQ(biased.o_bias, Bias::kGiven);
  EXPECT_EQ(biased.mlp_bias, Bias::kGiven);
}

TEST(LlamaConfigTest, WindowsHoldWhereTheFamilyUsesThem) {
  EXPECT_EQ(read(config_text("MistralForCausalLM")).windows, std::vector<std::int64_t>(4, 4096));
  EXPECT_EQ(read(config_text("MistralForCausalLM", R"(, "sliding_window": null)")).windows,
            std::vector<std::int64_t>(4, 0));
  EXPECT_EQ(read(config_text("Qwen2ForCausalLM", R"(, "use_sliding_window": true)")).windows,
            std::vector<std::int64_t>(4, 0))
      << "from layer 28 on";
  EXPECT_EQ(
      read(config_text("Qwen2ForCausalLM", R"(, "use_sliding_window": true, "max_window_layers": 3)")).windows.back(),
      4096);
  EXPECT_EQ(read(config_text("Qwen2ForCausalLM", R"(, "sliding_window": 16)")).windows,
            std::vector<std::int64_t>(4, 0));
  EXPECT_EQ(read(config_text("Qwen2ForCausalLM",
                             R"(, "sliding_window": 16, "use_sliding_window": true, "max_window_layers": 3)"))
                .windows,
            (std::vector<std::int64_t>{0, 0, 0, 16}));
  EXPECT_EQ(read(config_text("MistralForCausalLM",
                             R"(, "sliding_window": 16, "layer_types": ["full_attention", "sliding_attention",
                                 "full_attention", "sliding_attention"])"))
                .windows,
            (std::vector<std::int64_t>{0, 16, 0, 16}));
}

TEST(LlamaConfigTest, RefusesWhatItCannotRun) {
  EXPECT_ERROR(read(config_text("MambaForCausalLM")), ErrorCode::kUnsupported, "the architecture 'MambaForCausalLM'",
               "Qwen3ForCausalLM");
  EXPECT_ERROR(read("{}"), ErrorCode::kInvalid, "neither 'architectures' nor 'model_type'");
  EXPECT_ERROR(read(config_text("LlamaForCausalLM", R"(, "hidden_act": "gelu")")), ErrorCode::kUnsupported,
               "the activation 'gelu'");
  EXPECT_ERROR(read(config_text("LlamaForCausalLM", R"(, "num_key_value_heads": 3)")), ErrorCode::kInvalid,
               "8 attention heads cannot share 3 key-value heads");
  EXPECT_ERROR(read(config_text("LlamaForCausalLM", R"(, "head_dim": 7)")), ErrorCode::kInvalid, "a head of width 7");
  EXPECT_ERROR(read(config_text("LlamaForCausalLM", R"(, "head_dim": -16)")), ErrorCode::kInvalid,
               "head_dim: this must be a number from 1");
}

TEST(LlamaPartTest, HeadsThatAreFewerThanRanksAreHeldBySeveral) {
  const LlamaConfig config = read(config_text("LlamaForCausalLM", R"(, "num_key_value_heads": 2)"));
  EXPECT_EQ(part_of(config, 1, 2).kv_heads, (tensor::Range{1, 2}));
  EXPECT_EQ(part_of(config, 1, 4).kv_heads, (tensor::Range{0, 1}));
  EXPECT_EQ(part_of(config, 2, 4).kv_heads, (tensor::Range{1, 2}));
  EXPECT_EQ(part_of(config, 3, 4).heads, (tensor::Range{6, 8}));
  EXPECT_EQ(part_of(config, 3, 4).mlp, (tensor::Range{72, 96}));
}

TEST(LlamaPartTest, SizesThatDoNotDivideAreRefusedWithThoseThatDo) {
  const LlamaConfig config = read(config_text("LlamaForCausalLM", R"(, "num_key_value_heads": 2)"));
  try {
    part_of(config, 0, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    EXPECT_EQ(error.hint(), "numbers of ranks that work: 1, 2, 4, 8");
  }
}

}  // namespace
}  // namespace yoke::models::llama
