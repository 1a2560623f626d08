#include "yoke/spec/model_facts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/json.h"

namespace yoke::spec {
namespace {

const ModelFacts& model(std::string_view name) {
  const ModelFacts* found = find_model_facts(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

TEST(ModelFacts, ParameterSumsAreThePublishedTotals) {
  // total and active as computed from the published configs by others (llama.cpp prints several of them).
  const std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> published = {
      {"llama-3.1-405b", {405'853'388'800, 405'853'388'800}}, {"qwen3-30b-a3b", {30'532'122'624, 3'353'032'704}},
      {"qwen3-235b-a22b", {235'093'634'560, 22'190'763'520}}, {"mixtral-8x7b", {46'702'792'704, 12'879'925'248}},
      {"mixtral-8x22b", {140'620'634'112, 39'152'031'744}},   {"gpt-oss-20b", {20'914'757'184, 4'187'440'704}},
      {"gpt-oss-120b", {116'829'156'672, 5'711'982'912}},     {"gemma-3-27b", {27'009'346'304, 27'009'346'304}}};
  for (const auto& [name, counts] : published) {
    const ModelCount count = count_model(model(name));
    EXPECT_EQ(count.total, counts.first) << name;
    EXPECT_EQ(count.active, counts.second) << name;
  }
  // Router and norm biases are counted by some and not by others: below 0.01% here.
  EXPECT_NEAR(static_cast<double>(count_model(model("gpt3-175b")).total), 174'583'590'912.0, 1e7);
  EXPECT_NEAR(static_cast<double>(count_model(model("nemo-gpt-7b")).total), 6'838'292'480.0, 1e6);
  EXPECT_NEAR(static_cast<double>(count_model(model("deepseek-v3")).total), 671'026'419'200.0, 1e5);
  EXPECT_NEAR(static_cast<double>(count_model(model("glm-4.5-air")).total), 106'852'251'264.0, 1e6);
  EXPECT_NEAR(static_cast<double>(count_model(model("kimi-k2")).total), 1.027e12, 0.005e12);
  EXPECT_NEAR(static_cast<double>(count_model(model("llama-4-scout")).total), 107.8e9, 0.2e9) << "109B with its eyes";
  EXPECT_NEAR(static_cast<double>(count_model(model("llama-4-scout")).active), 17.2e9, 0.2e9);
  EXPECT_NEAR(static_cast<double>(count_model(model("llama-4-maverick")).total), 400.7e9, 0.3e9);
  EXPECT_NEAR(static_cast<double>(count_model(model("minimax-m2")).total), 229e9, 1e9);
  EXPECT_NEAR(static_cast<double>(count_model(model("minimax-m2")).active), 11.0e9, 0.1e9) << "10B and its embeddings";
}

TEST(ModelFacts, CachesAreAsLargeAsEnginesCountThem) {
  const auto bf16 = [](std::string_view name, std::int64_t tokens, CacheRule rule) {
    return 2 * cache_values(model(name), tokens, rule);
  };
  EXPECT_EQ(bf16("llama-3.1-405b", 1, CacheRule::kRead), 516096);
  EXPECT_EQ(bf16("deepseek-v3", 1, CacheRule::kRead), 70272);
  // vLLM reserves all layers of gpt-oss at full length: 73,728 bytes a token. Read are 18 layers and 18 windows of 128.
  EXPECT_EQ(bf16("gpt-oss-120b", 1000, CacheRule::kAllocated), 73'728'000);
  EXPECT_EQ(bf16("gpt-oss-120b", 1000, CacheRule::kRead), 18 * 2048.0 * 1000 + 18 * 2048.0 * 128);
  EXPECT_EQ(bf16("gemma-3-27b", 100, CacheRule::kRead), 507904 * 100.0);
}

TEST(ModelFacts, AreFoundByTheNamesThatPeopleUse) {
  EXPECT_EQ(model("Llama-3.3-70B-Instruct").name, "llama-3.3-70b");
  EXPECT_EQ(model("Meta-Llama-3.1-8B").name, "llama-3.1-8b");
  EXPECT_EQ(model("deepseek-r1").name, "deepseek-v3");
  EXPECT_EQ(model("gpt_oss_120b").name, "gpt-oss-120b");
  EXPECT_EQ(find_model_facts("llama"), nullptr);
  EXPECT_EQ(find_model_facts(""), nullptr);
}

TEST(ModelFacts, ASizeInANameStandsInForAShape) {
  const auto mixture = facts_from_size("some-new-model-504B-A40B NVFP4");
  ASSERT_TRUE(mixture);
  EXPECT_EQ(count_model(*mixture).total, 504'000'000'000);
  EXPECT_EQ(count_model(*mixture).active, 40'000'000'000);
  EXPECT_FALSE(mixture->guesses.empty());
  const auto dense = facts_from_size("mystery-9B");
  ASSERT_TRUE(dense);
  EXPECT_EQ(count_model(*dense).total, 9'000'000'000);
  EXPECT_EQ(dense->experts, 0);
  EXPECT_FALSE(facts_from_size("bert"));
  EXPECT_FALSE(facts_from_size("b200"));
  EXPECT_FALSE(facts_from_size("model-0b"));
}

TEST(ModelFacts, RowsHoldTogetherAndNamesAreUnique) {
  std::set<std::string> names;
  for (const ModelFacts& row : model_facts()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_EQ(row.heads % row.kv_heads, 0) << row.name;
    EXPECT_LE(row.experts_used, row.experts) << row.name;
    EXPECT_LE(row.full_layers, row.layers) << row.name;
    const ModelCount count = count_model(row);
    EXPECT_GT(count.rest, 0) << row.name;
    EXPECT_LE(count.active, count.total) << row.name;
  }
}

ModelFacts from_config(std::string_view json) { return facts_from_config(parse_json(json, "config.json")); }

TEST(ModelFacts, APublishedConfigGivesTheCataloguesSums) {
  const ModelFacts mixture = from_config(R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3,
    "vocab_size": 129280, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128})");
  EXPECT_EQ(count_model(mixture).total, count_model(model("deepseek-v3")).total);
  EXPECT_TRUE(mixture.guesses.empty());
  const ModelFacts vision = from_config(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
    "num_hidden_layers": 62, "hidden_size": 5376, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
    "intermediate_size": 21504, "vocab_size": 262208, "sliding_window": 1024, "sliding_window_pattern": 6}})");
  EXPECT_EQ(count_model(vision).total, count_model(model("gemma-3-27b")).total);
  EXPECT_EQ(cache_values(vision, 5000), cache_values(model("gemma-3-27b"), 5000));
}

TEST(ModelFacts, ConfigsMayLeaveOutWhatTheirFamilyShares) {
  const ModelFacts gemma = from_config(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
    "num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240, "sliding_window": 1024}})");
  EXPECT_EQ(count_model(gemma).total, count_model(model("gemma-3-4b")).total);
  EXPECT_EQ(cache_values(gemma, 5000), cache_values(model("gemma-3-4b"), 5000));
  const ModelFacts llama = from_config(R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
    "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 128, "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 2, "attention_chunk_size": 8192, "vocab_size": 202048}})");
  EXPECT_EQ(count_model(llama).total, count_model(model("llama-4-maverick")).total);
  EXPECT_EQ(count_model(llama).active, count_model(model("llama-4-maverick")).active);
  EXPECT_EQ(cache_values(llama, 20000), cache_values(model("llama-4-maverick"), 20000));
  EXPECT_TRUE(llama.guesses.empty());
}

TEST(ModelFacts, AnUnknownTypeIsPlannedAndTheGuessIsReported) {
  const ModelFacts novel = from_config(R"({"model_type": "novel9", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 100, "layer_types": ["linear_attention", "full_attention"]})");
  EXPECT_EQ(novel.full_layers, 1);
  EXPECT_EQ(novel.short_layers, ShortLayers::kState);
  ASSERT_EQ(novel.guesses.size(), 2U);
  EXPECT_NE(novel.guesses[1].find("novel9"), std::string::npos);
}

TEST(ModelFacts, AConfigThatMakesNoSenseIsRefusedWithTheKey) {
  const auto refused = [](std::string_view json) {
    try {
      from_config(json);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("taken");
  };
  EXPECT_NE(refused(R"({"hidden_size": 64})").find("'num_hidden_layers' is missing"), std::string::npos);
  EXPECT_NE(refused(R"({"num_hidden_layers": 0})").find("from 1 to"), std::string::npos);
  EXPECT_NE(refused(R"({"num_hidden_layers": 1099511627776})").find("from 0 to"), std::string::npos);
  const std::string head = R"({"num_hidden_layers": 16000000, "num_attention_heads": 8, "vocab_size": 100, )";
  EXPECT_NE(refused(head + R"("hidden_size": 16000000})").find("parameters"), std::string::npos);
  EXPECT_NE(refused(head + R"("hidden_size": 64, "num_local_experts": 4, "num_experts_per_tok": 5})").find("5 of 4"),
            std::string::npos);
  EXPECT_NE(refused(head + R"("hidden_size": 64, "num_key_value_heads": 3})").find("evenly"), std::string::npos);
  EXPECT_NE(refused("[]").find("a JSON object"), std::string::npos);
}

}  // namespace
}  // namespace yoke::spec
