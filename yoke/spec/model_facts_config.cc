// Any published config.json to ModelFacts. Families name the same size differently, so each size has a list of keys.
#include <fmt/format.h>

#include <cmath>

#include "yoke/base/fields.h"
#include "yoke/spec/model_facts.h"

namespace yoke::spec {
namespace {

using Keys = std::initializer_list<std::string_view>;

constexpr std::int64_t kExtentMax = std::int64_t{1} << 24;

// Types whose parts are all counted here. Another type is planned from the keys it shares with them.
constexpr std::array kCountedTypes = {"llama",       "mistral",     "mixtral", "qwen2",      "qwen2_moe",
                                      "qwen3",       "qwen3_moe",   "gpt_oss", "gemma3",     "gemma3_text",
                                      "deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe",   "gpt2",
                                      "phi3",        "olmo2",       "llama4",  "llama4_text"};

struct ConfigReader {
  const Document& map;

  const Document* find(Keys keys) const {
    for (const std::string_view key : keys) {
      const Document* const found = map.find(key);
      if (found != nullptr && found->kind != Document::Kind::kNull) return found;
    }
    return nullptr;
  }
  std::int64_t size(Keys keys, std::int64_t otherwise) const {
    const Document* const found = find(keys);
    if (found == nullptr) return otherwise;
    const auto value = from_json<std::int64_t>(*found);
    if (value < 0 || value > kExtentMax) refuse_field(*found, fmt::format("a number from 0 to {}", kExtentMax));
    return value;
  }
  // Some families leave out what is the same in all their models: `otherwise`, 0 where nothing is.
  std::int64_t needed(Keys keys, std::int64_t otherwise = 0) const {
    const std::int64_t value = size(keys, otherwise);
    if (value > 0) return value;
    if (const Document* const zero = find(keys)) refuse_field(*zero, fmt::format("a number from 1 to {}", kExtentMax));
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", map.where, *keys.begin()),
                "is this the config.json of a language model? The sizes of a model without one can be given by a "
                "catalogue name: 'yoke plan models'");
  }
  bool flag(std::string_view key, bool otherwise) const {
    const Document* const found = find({key});
    return found != nullptr ? from_json<bool>(*found) : otherwise;
  }
  std::string text(std::string_view key) const {
    const Document* const found = find({key});
    return found != nullptr && is_text(*found) ? found->text : "";
  }
};

void read_experts(const ConfigReader& config, ModelFacts& model) {
  model.experts = config.size({"num_local_experts", "n_routed_experts", "num_experts"}, 0);
  if (model.experts == 0) return;
  model.experts_used = config.size({"num_experts_per_tok", "num_experts_per_token", "moe_top_k"}, 0);
  if (model.experts_used < 1 || model.experts_used > model.experts) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: {} of {} experts cannot be used for a token", config.map.where, model.experts_used,
                            model.experts),
                "'num_experts_per_tok' goes from 1 to the number of experts");
  }
  model.expert_width = config.size({"moe_intermediate_size"}, config.size({"intermediate_size"}, model.mlp_width));
  model.shared_experts = config.size({"n_shared_experts", "num_shared_experts"}, 0);
  model.shared_width = config.size({"shared_expert_intermediate_size"}, 0);
  if (model.shared_width > 0 && model.shared_experts == 0) model.shared_experts = 1;
  model.dense_layers = std::min(config.size({"first_k_dense_replace"}, 0), model.layers);
  // Llama 4: every layer or every second one is a mixture, with one expert that all tokens use.
  if (const std::int64_t step = config.size({"interleave_moe_layer_step"}, 0); step > 0) {
    model.dense_layers = model.layers - model.layers / step;
    model.shared_experts = 1;
  }
}

void read_latent(const ConfigReader& config, ModelFacts& model) {
  const std::int64_t rank = config.size({"kv_lora_rank"}, 0);
  if (rank == 0) return;
  model.latent = LatentAttention{.query_rank = config.size({"q_lora_rank"}, 0),
                                 .kv_rank = rank,
                                 .plain_width = config.size({"qk_nope_head_dim"}, 128),
                                 .rotary_width = config.size({"qk_rope_head_dim"}, 64),
                                 .value_width = config.size({"v_head_dim"}, 128)};
  model.selected_tokens = config.size({"index_topk"}, 0);
}

// Which layers see everything. 'layer_types' says it layer by layer; older configs give a rhythm.
void read_layer_types(const ConfigReader& config, std::int64_t usual_rhythm, ModelFacts& model) {
  model.window = config.size({"sliding_window", "attention_chunk_size"}, 0);
  std::int64_t full = model.layers;
  if (const Document* const types = config.find({"layer_types"})) {
    full = 0;
    bool has_states = false;
    for (const std::string& type : from_json<std::vector<std::string>>(*types)) {
      if (type == "full_attention") ++full;
      has_states = has_states || type.find("linear") != std::string::npos || type.find("mamba") != std::string::npos;
    }
    full = std::min(full, model.layers);
    model.short_layers = has_states || model.window == 0 ? ShortLayers::kState : ShortLayers::kWindow;
  } else if (const std::int64_t every = config.size({"full_attention_interval"}, 0); every > 0) {
    full = model.layers / every;
    model.short_layers = ShortLayers::kState;
  } else if (const std::int64_t rhythm = config.size(
                 {"sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval"}, usual_rhythm);
             rhythm > 0 && model.window > 0) {
    full = model.layers / rhythm;
    model.short_layers = ShortLayers::kWindow;
  } else if (model.window > 0 && config.flag("use_sliding_window", true)) {
    full = 0;
    model.short_layers = ShortLayers::kWindow;
  }
  model.full_layers = full;
  if (full == model.layers) model.short_layers = ShortLayers::kNone;
  if (model.short_layers == ShortLayers::kNone) model.window = model.full_layers = 0;
  if (model.short_layers == ShortLayers::kState)
    model.guesses.emplace_back("the state of its layers without attention");
}

void name_unknown_parts(const std::string& type, ModelFacts& model) {
  const bool is_counted = std::find(kCountedTypes.begin(), kCountedTypes.end(), type) != kCountedTypes.end();
  if (is_counted) return;
  model.guesses.push_back(
      type.empty() ? "the model type: none is given, counted like a Llama"
                   : fmt::format("parts of '{}' beyond attention and MLP: counted like a Llama", printable(type, 40)));
}

void check_plausible(const ConfigReader& config, const ModelFacts& model) {
  if (is_plausible(model)) return;
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: these sizes make {:.1e} parameters", config.map.where, rough_parameters(model)),
              "no model is that large: look at num_hidden_layers, hidden_size and num_experts");
}

}  // namespace

ModelFacts facts_from_config(const Document& config) {
  if (config.kind != Document::Kind::kMap) refuse_field(config, "a JSON object");
  // Models that also see keep the language model's sizes one level down.
  const Document* const inner = config.find("text_config");
  const ConfigReader reader{inner != nullptr && inner->kind == Document::Kind::kMap ? *inner : config};
  const std::string type =
      reader.text("model_type").empty() ? ConfigReader{config}.text("model_type") : reader.text("model_type");
  ModelFacts model;
  model.name = type.empty() ? "config.json" : printable(type, 40);
  model.layers = reader.needed({"num_hidden_layers", "n_layer", "num_layers"});
  model.width = reader.needed({"hidden_size", "n_embd", "d_model"});
  const bool is_gemma3 = type.starts_with("gemma3");
  const bool is_llama4 = type.starts_with("llama4");
  // The published Gemma 3 4B says nothing of its heads.
  model.heads = reader.needed({"num_attention_heads", "n_head", "num_heads"}, is_gemma3 ? 8 : 0);
  model.kv_heads = std::max<std::int64_t>(reader.size({"num_key_value_heads"}, is_gemma3 ? 4 : model.heads), 1);
  if (model.heads % model.kv_heads != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {} attention heads cannot share {} key-value heads evenly",
                                                 reader.map.where, model.heads, model.kv_heads));
  }
  model.head_width = reader.size({"head_dim"}, is_gemma3 ? 256 : std::max<std::int64_t>(model.width / model.heads, 1));
  model.mlp_width = reader.size({"intermediate_size_mlp", "intermediate_size", "n_inner"}, 4 * model.width);
  model.vocabulary = reader.needed({"vocab_size"}, is_gemma3 ? 262208 : 0);
  model.context = reader.size({"max_position_embeddings", "n_positions"}, is_gemma3 ? 131072 : 2048);
  model.tied = reader.flag("tie_word_embeddings", type.starts_with("gemma") || type == "gpt2");
  model.gated = type != "gpt2";
  model.qkv_bias = type.starts_with("qwen2") || reader.flag("attention_bias", false);
  model.qk_norm = type.starts_with("qwen3") || is_gemma3;
  model.gpt_oss = type == "gpt_oss";
  if (model.gpt_oss) model.qkv_bias = false;  // counted with its other biases
  model.norms_per_layer = is_gemma3 ? 4 : 2;
  model.source = config.where.text();
  if (model.source.empty()) model.source = "config.json";
  read_experts(reader, model);
  read_latent(reader, model);
  read_layer_types(reader, is_gemma3 ? 6 : is_llama4 ? 4 : 0, model);
  name_unknown_parts(type, model);
  check_plausible(reader, model);
  return model;
}

}  // namespace yoke::spec
