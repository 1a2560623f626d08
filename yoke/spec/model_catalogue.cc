#include "yoke/spec/model_catalogue.h"

namespace yoke::spec {
namespace {

using enum ModelArchitecture;

// What models of one family have in common; the rows below add their sizes. The sizes are those of the published
// config.json files, and each row's parameter sum is the published total (model_catalogue_test.cc).
constexpr ModelShape kLlama2{
    .architecture = kLlama, .head_width = 128, .vocabulary = 32000, .context = 4096, .rope_theta = 1e4};
constexpr ModelShape kLlama31{.architecture = kLlama,
                              .kv_heads = 8,
                              .head_width = 128,
                              .vocabulary = 128256,
                              .context = 131072,
                              .rope_theta = 5e5,
                              .rope_scaling = Llama3Rope{.factor = 8}};
constexpr ModelShape kQwen25{.architecture = kQwen2,
                             .head_width = 128,
                             .vocabulary = 152064,
                             .context = 32768,
                             .qkv_bias = true,
                             .norm_epsilon = 1e-6,
                             .rope_theta = 1e6};
constexpr ModelShape kQwen3Family{.architecture = kQwen3,
                                  .kv_heads = 8,
                                  .head_width = 128,
                                  .vocabulary = 151936,
                                  .context = 40960,
                                  .qk_norm = true,
                                  .norm_epsilon = 1e-6,
                                  .rope_theta = 1e6};

struct Sizes {
  std::int64_t layers;
  std::int64_t width;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t mlp_width;
};
constexpr ModelShape sized(ModelShape shape, std::string_view name, const Sizes& sizes) {
  shape.name = name;
  shape.layers = sizes.layers;
  shape.width = sizes.width;
  shape.heads = sizes.heads;
  shape.kv_heads = sizes.kv_heads;
  shape.mlp_width = sizes.mlp_width;
  return shape;
}

// Small models share one matrix between embedding and head, since it is a large part of them.
constexpr ModelShape tied(ModelShape shape) {
  shape.tied = true;
  return shape;
}
constexpr ModelShape with_head_width(ModelShape shape, std::int64_t width) {
  shape.head_width = width;
  return shape;
}
constexpr ModelShape with_vocabulary(ModelShape shape, std::int64_t vocabulary) {
  shape.vocabulary = vocabulary;
  return shape;
}
constexpr ModelShape with_rope_factor(ModelShape shape, double factor) {
  shape.rope_scaling->factor = factor;
  return shape;
}

constexpr std::int64_t kSmallQwen25Vocabulary = 151936;

constexpr std::array kShapes = {
    // The model that ships with yoke.
    ModelShape{.name = "nano",
               .architecture = kLlama,
               .layers = 8,
               .width = 256,
               .heads = 8,
               .kv_heads = 4,
               .head_width = 32,
               .mlp_width = 768,
               .vocabulary = 2048,
               .context = 2048,
               .tied = true},
    sized(kLlama2, "llama-2-7b", {32, 4096, 32, 32, 11008}),
    sized(kLlama2, "llama-2-13b", {40, 5120, 40, 40, 13824}),
    sized(kLlama2, "llama-2-70b", {80, 8192, 64, 8, 28672}),
    sized(kLlama31, "llama-3.1-8b", {32, 4096, 32, 8, 14336}),
    sized(kLlama31, "llama-3.1-70b", {80, 8192, 64, 8, 28672}),
    sized(kLlama31, "llama-3.1-405b", {126, 16384, 128, 8, 53248}),
    with_head_width(with_rope_factor(tied(sized(kLlama31, "llama-3.2-1b", {16, 2048, 32, 8, 8192})), 32), 64),
    with_rope_factor(tied(sized(kLlama31, "llama-3.2-3b", {28, 3072, 24, 8, 8192})), 32),
    sized(kLlama31, "llama-3.3-70b", {80, 8192, 64, 8, 28672}),
    // Version 0.3: the first had a sliding window, which yoke does not have.
    ModelShape{.name = "mistral-7b",
               .architecture = kMistral,
               .layers = 32,
               .width = 4096,
               .heads = 32,
               .kv_heads = 8,
               .head_width = 128,
               .mlp_width = 14336,
               .vocabulary = 32768,
               .context = 32768,
               .rope_theta = 1e6},
    with_vocabulary(with_head_width(tied(sized(kQwen25, "qwen2.5-0.5b", {24, 896, 14, 2, 4864})), 64),
                    kSmallQwen25Vocabulary),
    with_vocabulary(tied(sized(kQwen25, "qwen2.5-1.5b", {28, 1536, 12, 2, 8960})), kSmallQwen25Vocabulary),
    with_vocabulary(tied(sized(kQwen25, "qwen2.5-3b", {36, 2048, 16, 2, 11008})), kSmallQwen25Vocabulary),
    sized(kQwen25, "qwen2.5-7b", {28, 3584, 28, 4, 18944}),
    sized(kQwen25, "qwen2.5-14b", {48, 5120, 40, 8, 13824}),
    sized(kQwen25, "qwen2.5-32b", {64, 5120, 40, 8, 27648}),
    sized(kQwen25, "qwen2.5-72b", {80, 8192, 64, 8, 29568}),
    tied(sized(kQwen3Family, "qwen3-0.6b", {28, 1024, 16, 8, 3072})),
    tied(sized(kQwen3Family, "qwen3-1.7b", {28, 2048, 16, 8, 6144})),
    tied(sized(kQwen3Family, "qwen3-4b", {36, 2560, 32, 8, 9728})),
    sized(kQwen3Family, "qwen3-8b", {36, 4096, 32, 8, 12288}),
    sized(kQwen3Family, "qwen3-14b", {40, 5120, 40, 8, 17408}),
    sized(kQwen3Family, "qwen3-32b", {64, 5120, 64, 8, 25600}),
};

}  // namespace

std::string_view to_string(ModelArchitecture architecture) {
  for (const auto& [name, candidate] : enum_names(architecture)) {
    if (candidate == architecture) return name;
  }
  return "";
}

std::string_view class_name(ModelArchitecture architecture) {
  switch (architecture) {
    case kLlama:
      return "LlamaForCausalLM";
    case kMistral:
      return "MistralForCausalLM";
    case kQwen2:
      return "Qwen2ForCausalLM";
    case kQwen3:
      return "Qwen3ForCausalLM";
    case ModelArchitecture::kQwen3Moe:
      return "Qwen3MoeForCausalLM";
  }
  return "";
}

std::span<const ModelShape> model_catalogue() { return kShapes; }

const ModelShape* find_model_shape(std::string_view name) {
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::vector<std::string> model_shape_names() {
  std::vector<std::string> names;
  for (const ModelShape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

std::array<LinearShape, 7> layer_linears(const ModelShape& shape) {
  const std::int64_t q = shape.heads * shape.head_width;
  const std::int64_t kv = shape.kv_heads * shape.head_width;
  return {{{"self_attn.q_proj", q, shape.width, shape.qkv_bias},
           {"self_attn.k_proj", kv, shape.width, shape.qkv_bias},
           {"self_attn.v_proj", kv, shape.width, shape.qkv_bias},
           {"self_attn.o_proj", shape.width, q},
           {"mlp.gate_proj", shape.mlp_width, shape.width},
           {"mlp.up_proj", shape.mlp_width, shape.width},
           {"mlp.down_proj", shape.width, shape.mlp_width}}};
}

std::int64_t count_parameters(const ModelShape& shape) {
  std::int64_t layer = 2 * shape.width + (shape.qk_norm ? 2 * shape.head_width : 0);
  for (const LinearShape& linear : layer_linears(shape)) {
    if (shape.experts > 0 && linear.module.starts_with("mlp.")) continue;
    layer += linear.outputs * (linear.inputs + (linear.has_bias ? 1 : 0));
  }
  layer += shape.experts * (shape.width + 3 * shape.width * shape.expert_width);
  const std::int64_t embeddings = (shape.tied ? 1 : 2) * shape.vocabulary * shape.width;
  return embeddings + shape.layers * layer + shape.width;
}

std::int64_t count_kv_values_per_token(const ModelShape& shape) {
  return 2 * shape.layers * shape.kv_heads * shape.head_width;
}

}  // namespace yoke::spec
