#include "yoke/spec/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/fields.h"

namespace yoke::spec {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;  // of any extent: far beyond every model, and no overflow

const Document* present(const Document& map, std::string_view key) {
  const Document* const found = map.find(key);
  return found != nullptr && found->kind != Document::Kind::kNull ? found : nullptr;
}

template <class T>
T value_or(const Document& map, std::string_view key, T otherwise) {
  const Document* const found = present(map, key);
  return found != nullptr ? from_json<T>(*found) : otherwise;
}

std::int64_t positive(const Document& config, std::string_view key, std::optional<std::int64_t> otherwise = {}) {
  const Document* const found = present(config, key);
  if (found == nullptr) {
    if (otherwise) return *otherwise;
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", config.where, key),
                "is this the config.json of a language model?");
  }
  const auto value = from_json<std::int64_t>(*found);
  if (value < 1 || value > kMaxSize) refuse_field(*found, fmt::format("a number from 1 to {}", kMaxSize));
  return value;
}

double positive_real(const Document& map, std::string_view key, double otherwise) {
  const auto value = value_or<double>(map, key, otherwise);
  if (!(value > 0)) refuse_field(*map.find(key), "a positive number");
  return value;
}

[[noreturn]] void refuse_architecture(const Document& config, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [text, architecture] : enum_names(ModelArchitecture{})) known.emplace_back(class_name(architecture));
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: yoke does not know the architecture '{}'", config.where, printable(name, 60)),
              fmt::format("it knows {}", fmt::join(known, ", ")));
}

ModelArchitecture read_architecture(const Document& config) {
  std::string name;
  if (const Document* const classes = present(config, "architectures")) {
    const auto names = from_json<std::vector<std::string>>(*classes);
    if (!names.empty()) name = names.front();
  }
  const auto type = value_or<std::string>(config, "model_type", "");
  if (name.empty() && type.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: neither 'architectures' nor 'model_type' is given", config.where),
                "is this the config.json of a language model?");
  }
  for (const auto& [text, architecture] : enum_names(ModelArchitecture{})) {
    if (name.empty() ? type == text : name == class_name(architecture)) return architecture;
  }
  refuse_architecture(config, name.empty() ? type : name);
}

void read_rope(const Document& config, ModelShape& shape) {
  const Document* const parameters = present(config, "rope_parameters");
  const Document* const scaling = parameters != nullptr ? parameters : present(config, "rope_scaling");
  shape.rope_theta = positive_real(config, "rope_theta", shape.rope_theta);
  if (parameters != nullptr) shape.rope_theta = positive_real(*parameters, "rope_theta", shape.rope_theta);
  if (scaling == nullptr) return;
  const auto type = value_or<std::string>(*scaling, "rope_type", value_or<std::string>(*scaling, "type", "default"));
  if (type != "llama3") return;
  Llama3Rope rope;
  rope.factor = positive_real(*scaling, "factor", rope.factor);
  rope.low_frequency_factor = positive_real(*scaling, "low_freq_factor", rope.low_frequency_factor);
  rope.high_frequency_factor = positive_real(*scaling, "high_freq_factor", rope.high_frequency_factor);
  rope.original_context = positive(*scaling, "original_max_position_embeddings", rope.original_context);
  shape.rope_scaling = rope;
}

void read_experts(const Document& config, ModelShape& shape) {
  shape.experts = positive(config, "num_experts");
  shape.experts_used = positive(config, "num_experts_per_tok");
  shape.expert_width = positive(config, "moe_intermediate_size");
  if (shape.experts_used > shape.experts) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a token cannot use {} of {} experts", config.where,
                                                 shape.experts_used, shape.experts));
  }
}

void check_heads(const Document& config, const ModelShape& shape) {
  if (shape.heads % shape.kv_heads != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {} attention heads cannot share {} key-value heads evenly",
                                                 config.where, shape.heads, shape.kv_heads));
  }
  if (shape.head_width < 2 || shape.head_width % 2 != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a head of width {} cannot be rotated: it must be even",
                                                 config.where, shape.head_width));
  }
}

Document rope_document(const ModelShape& shape) {
  Document rope = Document::map();
  rope.add("rope_type", Document::string(shape.rope_scaling ? "llama3" : "default"));
  if (shape.rope_scaling) {
    rope.add("factor", Document::number(shape.rope_scaling->factor));
    rope.add("low_freq_factor", Document::number(shape.rope_scaling->low_frequency_factor));
    rope.add("high_freq_factor", Document::number(shape.rope_scaling->high_frequency_factor));
    rope.add("original_max_position_embeddings", Document::number(shape.rope_scaling->original_context));
  }
  return rope;
}

void add_rope(Document& config, const ModelShape& shape) {
  Document rope = rope_document(shape);
  config.add("rope_theta", Document::number(shape.rope_theta));
  config.add("rope_scaling", shape.rope_scaling ? rope : Document::null());
  rope.add("rope_theta", Document::number(shape.rope_theta));
  config.add("rope_parameters", std::move(rope));
}

}  // namespace

ModelShape model_shape_from_config(const Document& config) {
  if (config.kind != Document::Kind::kMap) refuse_field(config, "a JSON object");
  ModelShape shape{.architecture = read_architecture(config)};
  shape.layers = positive(config, "num_hidden_layers");
  shape.width = positive(config, "hidden_size");
  shape.heads = positive(config, "num_attention_heads");
  shape.kv_heads = positive(config, "num_key_value_heads", shape.heads);
  // What transformers takes where the key is absent.
  const bool has_experts = shape.architecture == ModelArchitecture::kQwen3Moe;
  const bool qwen3 = shape.architecture == ModelArchitecture::kQwen3 || has_experts;
  shape.head_width = positive(config, "head_dim", qwen3 ? 128 : shape.width / shape.heads);
  shape.mlp_width = positive(config, "intermediate_size");
  shape.vocabulary = positive(config, "vocab_size");
  shape.context = positive(config, "max_position_embeddings", 2048);
  shape.tied = value_or(config, "tie_word_embeddings", false);
  // Qwen 2 has these biases always, and no key for them.
  shape.qkv_bias = shape.architecture == ModelArchitecture::kQwen2 || value_or(config, "attention_bias", false);
  shape.qk_norm = qwen3;
  shape.norm_epsilon = positive_real(config, "rms_norm_eps", 1e-6);
  if (has_experts) read_experts(config, shape);
  read_rope(config, shape);
  check_heads(config, shape);
  return shape;
}

Document config_of_model_shape(const ModelShape& shape) {
  const auto number = [](std::int64_t value) { return Document::number(value); };
  Document config = Document::map();
  config.add("architectures", Document::list({Document::string(std::string(class_name(shape.architecture)))}));
  config.add("model_type", Document::string(std::string(to_string(shape.architecture))));
  config.add("vocab_size", number(shape.vocabulary));
  config.add("hidden_size", number(shape.width));
  config.add("intermediate_size", number(shape.mlp_width));
  config.add("num_hidden_layers", number(shape.layers));
  config.add("num_attention_heads", number(shape.heads));
  config.add("num_key_value_heads", number(shape.kv_heads));
  config.add("head_dim", number(shape.head_width));
  config.add("hidden_act", Document::string("silu"));
  config.add("max_position_embeddings", number(shape.context));
  config.add("initializer_range", Document::number(0.02));
  config.add("rms_norm_eps", Document::number(shape.norm_epsilon));
  config.add("use_cache", Document::boolean(true));
  config.add("tie_word_embeddings", Document::boolean(shape.tied));
  config.add("attention_dropout", Document::number(0.0));
  const bool has_experts = shape.architecture == ModelArchitecture::kQwen3Moe;
  const bool is_qwen3 = shape.architecture == ModelArchitecture::kQwen3 || has_experts;
  if (has_experts) {
    config.add("num_experts", number(shape.experts));
    config.add("num_experts_per_tok", number(shape.experts_used));
    config.add("moe_intermediate_size", number(shape.expert_width));
  }
  if (shape.architecture == ModelArchitecture::kLlama || is_qwen3) {
    config.add("attention_bias", Document::boolean(shape.qkv_bias));
  }
  if (shape.architecture == ModelArchitecture::kLlama) config.add("mlp_bias", Document::boolean(false));
  if (shape.architecture != ModelArchitecture::kLlama) config.add("sliding_window", Document::null());
  if (shape.architecture == ModelArchitecture::kQwen2 || is_qwen3) {
    config.add("use_sliding_window", Document::boolean(false));
    config.add("max_window_layers", number(shape.layers));
  }
  add_rope(config, shape);
  return config;
}

}  // namespace yoke::spec
