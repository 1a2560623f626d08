// The shapes of language models that yoke knows by name: dense models of the Llama family as transformers has them.
// Plain numbers, from which config files, parameter counts and memory follow. Shapes of other models are read from
// their config.json: see model_config.h.
//
//   const ModelShape* shape = find_model_shape("llama-3.2-1b");
//   count_parameters(*shape) == 1'235'814'400
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke::spec {

// By the "model_type" of config.json.
enum class ModelArchitecture { kLlama, kMistral, kQwen2, kQwen3, kQwen3Moe };
constexpr auto enum_names(ModelArchitecture) {
  using A = ModelArchitecture;
  return std::array{std::pair{"llama", A::kLlama}, std::pair{"mistral", A::kMistral}, std::pair{"qwen2", A::kQwen2},
                    std::pair{"qwen3", A::kQwen3}, std::pair{"qwen3_moe", A::kQwen3Moe}};
}
std::string_view to_string(ModelArchitecture architecture);
std::string_view class_name(ModelArchitecture architecture);  // "LlamaForCausalLM", as transformers names it

// Llama 3.1 stretches the long waves of its rotary embedding. Its low and high frequency factors are 1 and 4 in every
// model that has been published.
struct Llama3Rope {
  double factor = 8;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  std::int64_t original_context = 8192;
  friend bool operator==(const Llama3Rope&, const Llama3Rope&) = default;
};

struct ModelShape {
  std::string_view name;  // in the catalogue; empty for a shape that was read from a file
  ModelArchitecture architecture = ModelArchitecture::kLlama;
  std::int64_t layers = 0;
  std::int64_t width = 0;  // of the residual stream: hidden_size
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t mlp_width = 0;
  std::int64_t experts = 0;       // of a layer; 0: none, the MLP is dense
  std::int64_t experts_used = 0;  // by each token
  std::int64_t expert_width = 0;  // of an expert's MLP
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  bool tied = false;      // the head is the embedding
  bool qkv_bias = false;  // of the query, key and value projections
  bool qk_norm = false;   // heads of queries and keys are normed
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;
  std::optional<Llama3Rope> rope_scaling = std::nullopt;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

std::span<const ModelShape> model_catalogue();
const ModelShape* find_model_shape(std::string_view name);  // null when unknown
std::vector<std::string> model_shape_names();

// One linear of a layer: y = W x with W [outputs, inputs].
struct LinearShape {
  std::string_view module;  // below "model.layers.N.": "self_attn.q_proj"
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  bool has_bias = false;
};
std::array<LinearShape, 7> layer_linears(const ModelShape& shape);

std::int64_t count_parameters(const ModelShape& shape);  // where there are experts, as if every layer had them
// Keys and values of one token in all layers; times the bytes of one makes the cache.
std::int64_t count_kv_values_per_token(const ModelShape& shape);

}  // namespace yoke::spec
