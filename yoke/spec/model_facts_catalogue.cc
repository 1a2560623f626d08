// The catalogue behind `yoke plan models`. The parameter sum of each row is held against the published total in
// model_facts_test.cc; rows whose shape is not known well carry the published totals and say what is guessed.
#include "yoke/spec/model_facts.h"

namespace yoke::spec {
namespace {

constexpr const char* kAiconfigurator = "ai-dynamo/aiconfigurator model_configs (copy of the published config.json)";
constexpr const char* kSumChecked = "config.json recalled; the parameter sum agrees with the published total";
constexpr const char* kTotalsOnly = "published totals; shape recalled, unchecked";

ModelFacts qwen3_mixture(std::string name, std::int64_t layers, std::int64_t width, std::int64_t heads,
                         std::int64_t expert_width) {
  return {.name = std::move(name),
          .layers = layers,
          .width = width,
          .heads = heads,
          .kv_heads = 4,
          .head_width = 128,
          .experts = 128,
          .experts_used = 8,
          .expert_width = expert_width,
          .vocabulary = 151936,
          .context = 40960,
          .qk_norm = true,
          .source = kAiconfigurator};
}

ModelFacts mixtral(std::string name, std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t inner,
                   std::int64_t context) {
  return {.name = std::move(name),
          .layers = layers,
          .width = width,
          .heads = heads,
          .kv_heads = 8,
          .head_width = 128,
          .experts = 8,
          .experts_used = 2,
          .expert_width = inner,
          .vocabulary = 32000,
          .context = context,
          .source = kAiconfigurator};
}

ModelFacts gpt_oss(std::string name, std::int64_t layers, std::int64_t experts) {
  return {.name = std::move(name),
          .layers = layers,
          .width = 2880,
          .heads = 64,
          .kv_heads = 8,
          .head_width = 64,
          .experts = experts,
          .experts_used = 4,
          .expert_width = 2880,
          .vocabulary = 201088,
          .context = 131072,
          .gpt_oss = true,
          .short_layers = ShortLayers::kWindow,
          .full_layers = layers / 2,
          .window = 128,
          .source = kAiconfigurator};
}

ModelFacts gemma3(std::string name, std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t kv_heads,
                  std::int64_t head_width, std::int64_t inner) {
  return {.name = std::move(name),
          .layers = layers,
          .width = width,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_width = head_width,
          .mlp_width = inner,
          .vocabulary = 262208,
          .context = 131072,
          .tied = true,
          .qk_norm = true,
          .norms_per_layer = 4,
          .short_layers = ShortLayers::kWindow,
          .full_layers = layers / 6,
          .window = 1024,
          .source = kSumChecked,
          .guesses = {}};
}

// Of NeMo's and Megatron's own measurements: plain MLPs of four times the width, learned positions and biases left out.
ModelFacts gpt3(std::string name, std::int64_t layers, std::int64_t width, std::int64_t heads) {
  return {.name = std::move(name),
          .layers = layers,
          .width = width,
          .heads = heads,
          .kv_heads = heads,
          .head_width = width / heads,
          .mlp_width = 4 * width,
          .vocabulary = 51200,
          .context = 2048,
          .tied = true,
          .gated = false,
          .source = "NeMo and Megatron recipes; Korthikanti et al. 2022"};
}

ModelFacts deepseek_v3() {
  return {.name = "deepseek-v3",
          .layers = 61,
          .width = 7168,
          .heads = 128,
          .kv_heads = 128,
          .head_width = 128,
          .mlp_width = 18432,
          .experts = 256,
          .experts_used = 8,
          .expert_width = 2048,
          .shared_experts = 1,
          .dense_layers = 3,
          .vocabulary = 129280,
          .context = 163840,
          .latent = LatentAttention{1536, 512, 128, 64, 128},
          .source = kAiconfigurator};
}

ModelFacts glm_45_air() {
  return {.name = "glm-4.5-air",
          .layers = 46,
          .width = 4096,
          .heads = 96,
          .kv_heads = 8,
          .head_width = 128,
          .mlp_width = 10944,
          .experts = 128,
          .experts_used = 8,
          .expert_width = 1408,
          .shared_experts = 1,
          .dense_layers = 1,
          .vocabulary = 151552,
          .context = 131072,
          .qkv_bias = true,
          .source = "config of PrimeIntellect/INTELLECT-3-Base (same shape); NeMo Megatron-Bridge docs"};
}

// Every `step`th layer is a mixture; three layers of four see chunks of 8192 tokens.
ModelFacts llama4(std::string name, std::int64_t experts, std::int64_t step, std::int64_t context) {
  constexpr std::int64_t kLayers = 48;
  return {.name = std::move(name),
          .layers = kLayers,
          .width = 5120,
          .heads = 40,
          .kv_heads = 8,
          .head_width = 128,
          .mlp_width = 16384,
          .experts = experts,
          .experts_used = 1,
          .expert_width = 8192,
          .shared_experts = 1,
          .dense_layers = kLayers - kLayers / step,
          .vocabulary = 202048,
          .context = context,
          .short_layers = ShortLayers::kWindow,
          .full_layers = kLayers / 4,
          .window = 8192,
          .source = kSumChecked};
}

ModelFacts minimax_m2() {
  return {.name = "minimax-m2",
          .layers = 62,
          .width = 3072,
          .heads = 48,
          .kv_heads = 8,
          .head_width = 128,
          .experts = 256,
          .experts_used = 8,
          .expert_width = 1536,
          .vocabulary = 200064,
          .context = 196608,
          .qk_norm = true,
          .source = kSumChecked};
}

// A trillion parameters, DeepSeek's form with more experts and fewer heads.
ModelFacts kimi_k2() {
  ModelFacts model = deepseek_v3();
  model.name = "kimi-k2";
  model.heads = model.kv_heads = 64;
  model.experts = 384;
  model.dense_layers = 1;
  model.vocabulary = 163840;
  model.context = 131072;
  model.source = kSumChecked;
  return model;
}

ModelFacts qwen35_mixture() {
  return {.name = "qwen3.5-397b-a17b",
          .layers = 60,
          .width = 4096,
          .heads = 32,
          .kv_heads = 2,
          .head_width = 256,
          .experts = 512,
          .experts_used = 10,
          .expert_width = 1024,
          .shared_experts = 1,
          .vocabulary = 248320,
          .context = 262144,
          .short_layers = ShortLayers::kState,
          .full_layers = 15,
          .total_given = 397'000'000'000,
          .active_given = 17'000'000'000,
          .source = kTotalsOnly,
          .guesses = {"the state of its linear-attention layers"}};
}

ModelFacts qwen36_mixture() {
  return {.name = "qwen3.6-35b-a3b",
          .layers = 40,
          .width = 2048,
          .heads = 16,
          .kv_heads = 2,
          .head_width = 256,
          .experts = 256,
          .experts_used = 8,
          .expert_width = 512,
          .shared_experts = 1,
          .vocabulary = 248320,
          .context = 262144,
          .short_layers = ShortLayers::kState,
          .full_layers = 10,
          .total_given = 35'000'000'000,
          .active_given = 3'300'000'000,
          .source = kTotalsOnly,
          .guesses = {"the state of its linear-attention layers"}};
}

ModelFacts qwen36_dense() {
  return {.name = "qwen3.6-27b",
          .layers = 64,
          .width = 5120,
          .heads = 24,
          .kv_heads = 4,
          .head_width = 256,
          .mlp_width = 17408,
          .vocabulary = 248320,
          .context = 262144,
          .short_layers = ShortLayers::kState,
          .full_layers = 16,
          .total_given = 27'000'000'000,
          .active_given = 27'000'000'000,
          .source = kTotalsOnly,
          .guesses = {"the state of its linear-attention layers"}};
}

ModelFacts deepseek_v41_flash() {
  return {.name = "deepseek-v4.1-flash",
          .layers = 43,
          .width = 4096,
          .heads = 64,
          .kv_heads = 1,
          .head_width = 512,
          .experts = 256,
          .experts_used = 6,
          .expert_width = 2048,
          .shared_experts = 1,
          .vocabulary = 129280,
          .context = 1048576,
          .latent = LatentAttention{1024, 512, 448, 64, 512},
          .selected_tokens = 2048,
          .total_given = 284'000'000'000,
          .active_given = 13'000'000'000,
          .source = kTotalsOnly,
          .guesses = {"layers and heads", "what its sparse attention reads"}};
}

ModelFacts glm_52() {
  return {.name = "glm-5.2",
          .layers = 78,
          .width = 6144,
          .heads = 64,
          .kv_heads = 64,
          .head_width = 192,
          .experts = 256,
          .experts_used = 8,
          .expert_width = 2048,
          .shared_experts = 1,
          .dense_layers = 3,
          .vocabulary = 154880,
          .context = 202752,
          .latent = LatentAttention{2048, 512, 192, 64, 256},
          .selected_tokens = 2048,
          .total_given = 744'000'000'000,
          .active_given = 40'000'000'000,
          .source = kTotalsOnly,
          .guesses = {"heads and widths", "what its sparse attention reads"}};
}

ModelFacts nemo_gpt_7b() {
  return {.name = "nemo-gpt-7b",
          .layers = 32,
          .width = 4096,
          .heads = 32,
          .kv_heads = 32,
          .head_width = 128,
          .mlp_width = 10880,
          .vocabulary = 50304,
          .context = 2048,
          .source = "NeMo-Framework-Launcher gpt3/7b_improved.yaml (no total is published)"};
}

std::vector<ModelFacts> all_models() {
  std::vector<ModelFacts> all;
  for (const ModelShape& shape : model_catalogue()) all.push_back(facts_of_shape(shape));
  const std::vector<ModelFacts> more = {qwen3_mixture("qwen3-30b-a3b", 48, 2048, 32, 768),
                                        qwen3_mixture("qwen3-235b-a22b", 94, 4096, 64, 1536),
                                        qwen36_dense(),
                                        qwen36_mixture(),
                                        qwen35_mixture(),
                                        mixtral("mixtral-8x7b", 32, 4096, 32, 14336, 32768),
                                        mixtral("mixtral-8x22b", 56, 6144, 48, 16384, 65536),
                                        gpt_oss("gpt-oss-20b", 24, 32),
                                        gpt_oss("gpt-oss-120b", 36, 128),
                                        deepseek_v3(),
                                        deepseek_v41_flash(),
                                        kimi_k2(),
                                        llama4("llama-4-scout", 16, 1, 10485760),
                                        llama4("llama-4-maverick", 128, 2, 1048576),
                                        minimax_m2(),
                                        glm_45_air(),
                                        glm_52(),
                                        gemma3("gemma-3-4b", 34, 2560, 8, 4, 256, 10240),
                                        gemma3("gemma-3-12b", 48, 3840, 16, 8, 256, 15360),
                                        gemma3("gemma-3-27b", 62, 5376, 32, 16, 128, 21504),
                                        nemo_gpt_7b(),
                                        gpt3("gpt3-5b", 24, 4096, 32),
                                        gpt3("gpt3-20b", 44, 6144, 48),
                                        gpt3("gpt3-40b", 48, 8192, 64),
                                        gpt3("gpt3-175b", 96, 12288, 96),
                                        gpt3("megatron-22b", 48, 6144, 64),
                                        gpt3("megatron-530b", 105, 20480, 128),
                                        gpt3("megatron-1t", 128, 25600, 160)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

std::span<const ModelFacts> model_facts() {
  static const std::vector<ModelFacts> kAll = all_models();
  return kAll;
}

}  // namespace yoke::spec
