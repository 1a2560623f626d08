// The shape of a model of the Llama kind, from its config.json: Llama 2 to 3.3 (Touvron et al. 2023, Grattafiori et al.
// 2024), Mistral (Jiang et al. 2023), Qwen2 (with biases on q, k, v) and Qwen3 (with norms on q and k), dense ones.
// Plain data.
#pragma once
#include <cstdint>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/models/parallel.h"
#include "yoke/ops/rope.h"
#include "yoke/spec/model_catalogue.h"

namespace yoke::models::llama {

struct LlamaConfig {
  spec::ModelArchitecture architecture = spec::ModelArchitecture::kLlama;
  std::int64_t L = 0;        // layers
  std::int64_t C = 0;        // width
  std::int64_t H = 0;        // query heads
  std::int64_t Hkv = 0;      // heads of keys and values
  std::int64_t D = 0;        // head width
  std::int64_t F = 0;        // MLP width
  std::int64_t V = 0;        // vocabulary
  std::int64_t context = 0;  // tokens that it was trained for
  float epsilon = 0;
  ops::Rope rope;
  bool tied = false;  // the head is the embedding
  Bias qkv_bias = Bias::kNone;
  Bias o_bias = Bias::kNone;
  Bias mlp_bias = Bias::kNone;
  bool qk_norm = false;
  std::vector<std::int64_t> windows;  // of each layer: how many tokens back it sees; 0: all
};

// Error(kUnsupported) lists the architectures there are; kInvalid names the key that makes no sense.
LlamaConfig read_llama_config(const Document& config);

// What a rank of `size` computes. Heads of keys and values that are fewer than the ranks are held by several.
struct LlamaPart {
  tensor::Range heads;  // of queries
  tensor::Range kv_heads;
  tensor::Range mlp;  // columns of the MLP
};
// Error(kInvalid) where the heads or the MLP cannot be divided so; its hint names the numbers of ranks that work.
LlamaPart part_of(const LlamaConfig& config, int rank, int size);

}  // namespace yoke::models::llama
