// The shape of any published language model as far as planning needs it: dense and mixture of experts, grouped and
// latent attention, windows and hybrids. The engine's own shapes (model_catalogue.h) are a part of it. Image models are
// in image_facts.h.
//
//   const ModelFacts* model = find_model_facts("gpt-oss-120b");
//   count_model(*model).total == 116'829'156'672
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/model_catalogue.h"

namespace yoke::spec {

// What a layer without full attention keeps of the past.
enum class ShortLayers { kNone, kWindow, kState };

// Multi-head latent attention (DeepSeek): one latent vector a token and layer.
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: the query is not compressed
  std::int64_t kv_rank = 0;
  std::int64_t plain_width = 0;   // of a head, without position
  std::int64_t rotary_width = 0;  // of a head, with position
  std::int64_t value_width = 0;
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

struct ModelFacts {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t mlp_width = 0;  // of dense layers
  std::int64_t experts = 0;    // 0: dense
  std::int64_t experts_used = 0;
  std::int64_t expert_width = 0;
  std::int64_t shared_experts = 0;
  std::int64_t shared_width = 0;  // of one shared expert; 0: as expert_width
  std::int64_t dense_layers = 0;  // the first ones of a mixture that are dense
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  bool tied = false;
  bool gated = true;  // three matrices in an MLP, else two
  bool qkv_bias = false;
  bool qk_norm = false;
  bool gpt_oss = false;  // biases of experts, attention and router, and sinks
  std::int64_t norms_per_layer = 2;
  ShortLayers short_layers = ShortLayers::kNone;
  std::int64_t full_layers = 0;  // with full attention, where short_layers says that others exist
  std::int64_t window = 0;
  std::optional<LatentAttention> latent = std::nullopt;
  std::int64_t selected_tokens = 0;  // sparse attention reads this many; 0: all
  // Published totals, for models whose shape is not known well: parts are then derived from these.
  std::int64_t total_given = 0;
  std::int64_t active_given = 0;
  std::string source;
  std::vector<std::string> guesses;  // which terms are not known: each widens the interval
  friend bool operator==(const ModelFacts&, const ModelFacts&) = default;
};

// Parameters by what reads them when.
struct ModelCount {
  std::int64_t total = 0;
  std::int64_t active = 0;     // of one token, the input embedding included
  std::int64_t embedding = 0;  // looked up, not read; also the head where tied
  std::int64_t head = 0;       // of its own or the embedding: read for each sampled token
  std::int64_t rest = 0;       // attention, norms, routers, shared experts, dense layers
  std::int64_t expert = 0;     // one expert in all layers; 0: dense
  std::int64_t attention = 0;  // part of rest
  std::int64_t matmul() const { return active - embedding_only; }  // read and multiplied for one token
  std::int64_t embedding_only = 0;                                 // the embedding where it is not the head
};
ModelCount count_model(const ModelFacts& model);
// Sizes that a model can have, so that its sums stay exact: fewer than 1e15 parameters, no negative extent.
bool is_plausible(const ModelFacts& model);
double rough_parameters(const ModelFacts& model);  // never overflows

// Keys and values, or the latent vectors, that one sequence of so many tokens holds. `allocated` is what engines that
// put all layers into one pool of pages reserve: windows do not save anything there.
enum class CacheRule { kRead, kAllocated };
double cache_values(const ModelFacts& model, std::int64_t tokens, CacheRule rule = CacheRule::kRead);

ModelFacts facts_of_shape(const ModelShape& shape);

std::span<const ModelFacts> model_facts();  // all that are catalogued
// By name, also without dots and dashes, or by another name that people use; null when unknown.
const ModelFacts* find_model_facts(std::string_view name);
std::vector<std::string> model_fact_names();

// A stand-in from sizes in a name: "9B", "397b-a17b", "70B". The nearest catalogued shape, scaled. Nothing without one.
std::optional<ModelFacts> facts_from_size(std::string_view name);

// From any config.json of a language model. What yoke does not know is guessed and told in `guesses`. Error(kInvalid)
// where sizes are missing or absurd.
ModelFacts facts_from_config(const Document& config);

}  // namespace yoke::spec
